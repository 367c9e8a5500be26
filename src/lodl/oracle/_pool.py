"""`DecisionPool`: the decisions of all instances, priced under every label without a call."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lodl._typing import Array

Index = npt.NDArray[np.intp]

_N_PER_STEP = 256  # instances whose costs are compared with all decisions at once
_MAX_COMPARED = 20_000  # decisions
_TOLERANCE = 1e-6  # share of the largest: difference between two answers about one decision
_STEP = 1e-3  # share of the labels' scale: step of the differences that slopes may come from
_NOISE = 1e3 * np.finfo(np.float64).eps  # share of the costs that such a difference loses
_MAX_LOST = 1e-2  # share of the largest gradient: beyond it, slopes mean nothing


@dataclass(frozen=True, eq=False)
class DecisionPool:
    """The distinct decisions of all instances, each known at every label.

    Instances without context share their decisions: the solver sees only the prediction, so any
    decision made for one instance is feasible for all. If the objective is affine in the label, a
    single answer determines what decision k costs under any label v:

        cost_k(v) = constant_k + gradient_k . (v - centre)

    Attributes:
        y: Labels less their mean, the centre, flattened, shape (n, D).
        centre: The mean label, shape (D,).
        gradient: Derivative of each decision's cost by the label, shape (P, D).
        constant: Its cost under the mean label, shape (P,).
        met: The decision of each instance's label and points, -1 if the call failed, shape
            (n, 1 + K).
        regret: The regret of each point, NaN if it is unknown, shape (n, K).
    """

    y: Array
    centre: Array
    gradient: Array
    constant: Array
    met: Index
    regret: Array
    _nearest: dict[bytes, list[Index]] = field(default_factory=dict, init=False)

    @classmethod
    def of(
        cls, y: Array, loss: Array, regret: Array, gradient: Array, decision: Index
    ) -> "DecisionPool":
        """Return the pool of answers.

        `loss` has the cost of the decisions of label and points under the label, and `decision`
        their rows of `gradient` (M, D), -1 if a call failed; both have shape (n, 1 + K).
        """
        centre = y.mean(axis=0)
        y, met = y - centre, np.full(decision.shape, -1, dtype=np.intp)
        is_known = decision >= 0
        rows, _ = np.nonzero(is_known)
        if not len(rows):
            return cls(y, centre, y[:0], np.empty(0), met, regret)
        cost, of_each = loss[is_known], gradient[decision[is_known]]
        constant = cost - np.einsum("kd,kd->k", of_each, y[rows])
        keys = _keys(of_each, constant, y, cost)
        # Rows of bytes sort several times faster than rows of numbers.
        as_bytes = keys.view(np.dtype((np.void, keys.itemsize * keys.shape[1]))).reshape(-1)
        _, first, number = np.unique(as_bytes, return_index=True, return_inverse=True)
        met[is_known] = number.reshape(-1)
        return cls(y, centre, of_each[first], constant[first], met, regret)

    def __len__(self) -> int:
        return len(self.constant)

    def regrets(self, row: int, decisions: Index) -> Array:
        """Return what decisions cost more at an instance than its own best one, shape (m,)."""
        both = np.append(decisions, self.met[row, 0])
        cost = self.constant[both] + self.gradient[both] @ self.y[row]
        return np.asarray(cost[:-1] - cost[-1])

    def regrets_at(self, y_hat: Array) -> Array:
        """Return the regret of the cheapest known decision under predictions (n, D), or NaN."""
        regrets = np.full(len(self.y), np.nan)
        for start, costs in self._costs(y_hat - self.centre):
            for row, decision in enumerate(self._compared[costs.argmin(axis=1)], start):
                if self.met[row, 0] >= 0:
                    regrets[row] = self.regrets(row, np.array([decision]))[0]
        return regrets

    @cached_property
    def _compared(self) -> Index:
        """The decisions that instances compare: all, or those that were met most often."""
        if len(self) <= _MAX_COMPARED:
            return np.arange(len(self))
        counts = np.bincount(self.met[self.met >= 0], minlength=len(self))
        return np.sort(np.argsort(-counts, kind="stable")[:_MAX_COMPARED])

    def _costs(self, points: Array) -> Iterator[tuple[int, Array]]:
        """Yield the first of some instances, and the costs of decisions under their points."""
        constant, gradient = self.constant[self._compared], self.gradient[self._compared]
        for start in range(0, len(points), _N_PER_STEP):
            yield start, constant + points[start : start + _N_PER_STEP] @ gradient.T

    def nearest(self, y_hat: Array | None, n: int) -> list[Index]:
        """Return the decisions that matter most to each instance, all different.

        These are its own and the `n` cheapest under its label. With predictions (n, D) come the `n`
        cheapest under the prediction, which the model might take, and under the point as far beyond
        it as the label is before, where hinges are highest. The label's own decision is left out.
        """
        key = b"%d " % n + (b"" if y_hat is None else y_hat.tobytes())
        if key not in self._nearest:  # the losses of a round need the same decisions
            self._nearest.clear()
            self._nearest[key] = self._find_nearest(y_hat, n)
        return self._nearest[key]

    def _find_nearest(self, y_hat: Array | None, n: int) -> list[Index]:
        points = [self.y]
        if y_hat is not None:
            predicted = y_hat - self.centre
            points += [predicted, 2 * predicted - self.y]
        n_taken, near = min(n, len(self._compared)), [[met] for met in self.met]
        for at in points:
            for start, costs in self._costs(at):
                cheapest = np.argpartition(costs, n_taken - 1, axis=1)[:, :n_taken]
                for row, decisions in enumerate(self._compared[cheapest], start):
                    near[row].append(decisions)
        return [np.setdiff1d(np.concatenate(each), [-1, each[0][0]]) for each in near]


def _keys(gradient: Array, constant: Array, y: Array, cost: Array) -> Array:
    """Return rows of numbers that differ between decisions, rounded so that answers agree."""
    # Gradients may be differences of large costs, which lose digits. Constants lose them, too.
    size, largest = np.abs(gradient).max(initial=0.0) or 1.0, float(np.abs(cost).max())
    scale = float(y.std(axis=0).max(initial=0.0)) or 1.0
    lost = min(_NOISE * largest / (_STEP * scale * size), _MAX_LOST)
    of_constants = max(_TOLERANCE * float(np.ptp(cost)), _NOISE * largest)
    if lost > _TOLERANCE:
        of_constants = max(of_constants, lost * size * scale)
    steps = size * max(_TOLERANCE, lost), of_constants or 1.0
    keys = np.column_stack([gradient / steps[0], constant / steps[1]])
    return np.round(keys) + 0.0  # no -0.0, whose bytes differ
