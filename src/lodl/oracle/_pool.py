"""Decisions that the solver made for any instance, and what each would cost at every other."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lodl._typing import Array

Index = npt.NDArray[np.intp]

_AT_ONCE = 256  # instances whose costs are compared with all decisions at once
_MOST_COMPARED = 20_000  # decisions
_TOLERANCE = 1e-6  # of the largest: how far two answers about one decision may be apart
_STEP = 1e-3  # of the labels' spread: that of the differences which slopes may come from
_NOISE = 1e3 * np.finfo(np.float64).eps  # of the costs that are subtracted there
_MOST_LOST = 1e-2  # of the largest gradient: beyond it, slopes say nothing


@dataclass(frozen=True, eq=False)
class DecisionPool:
    """The distinct decisions met at all instances, each known at every label.

    Without a context the solver sees nothing but the prediction, so a decision that it made for one
    instance is one that it could make for any other. If the objective is affine in the label, a
    single answer tells what decision k costs under any label v:

        cost_k(v) = constant_k + gradient_k . (v - centre)

    So every instance knows the decisions of all others, for no further solver call.

    Attributes:
        y: Labels less their mean, the centre, flattened, shape (n, D).
        centre: The mean label, shape (D,).
        gradient: Derivative of each decision's cost by the label, shape (P, D).
        constant: Its cost under the mean label, shape (P,).
        met: The decision of each candidate of each instance, that for the label first, -1 where the
            call failed, shape (n, 1 + K).
        regret: The regret of each candidate, NaN where unknown, shape (n, K).
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

        Args:
            y: Labels, flattened, shape (n, D).
            loss: The cost of each candidate's decision under its own label, shape (n, 1 + K).
            regret: The regret of each candidate, shape (n, K).
            gradient: Derivatives by the label, shape (M, D).
            decision: Each candidate's row of `gradient`, -1 if its call failed, shape (n, 1 + K).
        """
        centre = y.mean(axis=0)
        y, met = y - centre, np.full(decision.shape, -1, dtype=np.intp)
        is_known = decision >= 0
        rows, _ = np.nonzero(is_known)
        if not len(rows):
            return cls(y, centre, np.empty((0, y.shape[1])), np.empty(0), met, regret)
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
        """Return the regret of the cheapest known decision under each prediction, shape (n,).

        It is NaN where the label's own decision is unknown.

        Args:
            y_hat: A prediction for each instance, shape (n, D).
        """
        found = np.full(len(self.y), np.nan)
        for start, costs in self._costs(y_hat - self.centre):
            cheapest = self._compared[costs.argmin(axis=1)]
            for row, decision in enumerate(cheapest, start):
                if self.met[row, 0] >= 0:
                    found[row] = self.regrets(row, np.array([decision]))[0]
        return found

    @cached_property
    def _compared(self) -> Index:
        """The decisions that instances compare: all, or those that were met most often."""
        if len(self) <= _MOST_COMPARED:
            return np.arange(len(self))
        counts = np.bincount(self.met[self.met >= 0], minlength=len(self))
        return np.sort(np.argsort(-counts, kind="stable")[:_MOST_COMPARED])

    def _costs(self, at: Array) -> Iterator[tuple[int, Array]]:
        """Yield, for some instances at a time, the first and what decisions cost under `at`."""
        constant, gradient = self.constant[self._compared], self.gradient[self._compared]
        for start in range(0, len(at), _AT_ONCE):
            yield start, constant + at[start : start + _AT_ONCE] @ gradient.T

    def nearest(self, y_hat: Array | None, n: int) -> list[Index]:
        """Return the decisions that matter most to each instance, all different.

        These are its own and the `n` cheapest under its label, which a good model must tell apart.
        With predictions come the `n` cheapest under the prediction, which the model might take,
        and under the point as far beyond it as the label is before, where the hinge of a decision
        is highest. The label's own decision is left out.

        Args:
            y_hat: A prediction for each instance, shape (n, D), or None.
            n: Number of decisions to take at each point.
        """
        key = b"%d " % n + (b"" if y_hat is None else y_hat.tobytes())
        if key not in self._nearest:  # the losses of a round ask for the same
            self._nearest.clear()
            self._nearest[key] = self._find_nearest(y_hat, n)
        return self._nearest[key]

    def _find_nearest(self, y_hat: Array | None, n: int) -> list[Index]:
        points = [self.y]
        if y_hat is not None:
            there = y_hat - self.centre
            points += [there, 2 * there - self.y]
        n_taken = min(n, len(self._compared))
        near: list[list[Index]] = [[] for _ in self.y]
        for at in points:
            for start, costs in self._costs(at):
                cheapest = np.argpartition(costs, n_taken - 1, axis=1)[:, :n_taken]
                for row, decisions in enumerate(self._compared[cheapest], start):
                    near[row].append(decisions)
        chosen = (np.concatenate([met, *more]) for met, more in zip(self.met, near, strict=True))
        return [np.setdiff1d(one, [-1, met[0]]) for one, met in zip(chosen, self.met, strict=True)]


def _keys(gradient: Array, constant: Array, y: Array, cost: Array) -> Array:
    """Return what tells decisions apart, rounded so that answers about one decision agree.

    Gradients may come from differences of costs, which lose digits where costs are large beside
    what they change by, and constants lose what gradients do.
    """
    size = np.abs(gradient).max(initial=0.0) or 1.0
    spread = float(y.std(axis=0).max(initial=0.0)) or 1.0
    largest = float(np.abs(cost).max())
    lost = min(_NOISE * largest / (_STEP * spread * size), _MOST_LOST)
    of_constants = max(_TOLERANCE * float(np.ptp(cost)), _NOISE * largest)
    if lost > _TOLERANCE:
        of_constants = max(of_constants, lost * size * spread)
    steps = size * max(_TOLERANCE, lost), of_constants or 1.0
    keys = np.column_stack([gradient / steps[0], constant / steps[1]])
    return np.round(keys) + 0.0  # no -0.0, whose bytes differ
