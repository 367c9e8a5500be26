"""`DecisionPool`: the decisions of all instances, priced under every label without a call."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from lodl._arrays import distinct_rows
from lodl._typing import Array, Flags, Index

_N_PER_STEP = 256  # instances whose costs are compared with all decisions at once
_MAX_COMPARED = 20_000  # decisions
_TOLERANCE = 1e-6  # share of the largest: difference between two answers about one decision
_N_TYPICAL = 500  # labels' decisions whose regrets elsewhere are averaged if some are not allowed
_FORBIDDEN = 1e300  # cost of a decision that an instance's context does not allow
_STEP = 1e-3  # share of the labels' scale: step of the differences that slopes may come from
_NOISE = 1e3 * np.finfo(np.float64).eps  # share of the costs that such a difference loses
_MAX_LOST = 1e-2  # share of the largest gradient: beyond it, slopes mean nothing


@dataclass(frozen=True, eq=False)
class DecisionPool:
    """The distinct decisions of all instances, each known at every label.

    Instances without context share their decisions: the solver sees only the prediction, so any
    decision made for one instance is feasible for all. With contexts they share what
    `LinearProblem.are_feasible` allows. If the objective is affine in the label, a
    single answer determines what decision k costs under any label v:

        cost_k(v) = constant_k + gradient_k . (v - centre)
    """

    y: Array  #: Labels less their mean, the centre, flattened, shape (n, D).
    centre: Array  #: The mean label, shape (D,).
    gradient: Array  #: Derivative of each decision's cost by the label, shape (P, D).
    constant: Array  #: Its cost under the mean label, shape (P,).
    #: The decision of each instance's label and points, -1 if the call failed, shape (n, 1 + K).
    met: Index
    regret: Array  #: The regret of each point, NaN if it is unknown, shape (n, K).
    #: Whether an instance's context allows each decision, shape (n, P). None if all are allowed.
    is_allowed: Flags | None = None
    _nearest: dict[bytes, Index] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, y: Array, loss: Array, regret: Array, gradient: Array, decision: Index) -> Self:
        """Return the pool of answers.

        `loss` has the cost of the decisions of label and points under the label, and `decision`
        their rows of `gradient` (M, D), -1 if a call failed; both have shape (n, 1 + K).
        """
        centre = y.mean(axis=0)
        y, met, is_known = y - centre, np.full(decision.shape, -1, dtype=np.intp), decision >= 0
        if not is_known.any():
            return cls(y, centre, y[:0], np.empty(0), met, regret)
        constant = np.zeros(decision.shape)  # answers that failed are never read
        for column, numbers in enumerate(decision.T):
            priced = np.einsum("nd,nd->n", gradient[numbers], y)
            constant[:, column] = np.where(numbers >= 0, loss[:, column] - priced, 0.0)
        steps = _steps(gradient, y, loss[is_known])
        used, number = np.unique(decision[is_known], return_inverse=True)
        kind = distinct_rows(np.round(gradient[used] / steps[0]))[1][number]
        keys = np.column_stack([kind, np.round(constant[is_known] / steps[1])])
        _, first, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        met[is_known] = number.reshape(-1)
        of_each = gradient[decision[is_known][first]]
        return cls(y, centre, of_each, constant[is_known][first], met, regret)

    def __len__(self) -> int:
        return len(self.constant)

    @cached_property
    def regrets_of_others(self) -> Array:
        """Mean regret of all labels' own decisions at each instance, NaN without an own one."""
        own = self.met[:, 0]
        if not (own >= 0).any():
            return np.full(len(own), np.nan)
        known = own[own >= 0]
        if self.is_allowed is not None:
            known = known[:_N_TYPICAL]
            regret = self.regrets(np.broadcast_to(known, (len(own), len(known))))
            is_allowed = self.is_allowed[:, known]
            mean = np.where(is_allowed, regret, 0.0).sum(axis=1) / is_allowed.sum(axis=1).clip(1)
            return np.where(own >= 0, mean, np.nan)
        constant, gradient = self.constant[known].mean(), self.gradient[known].mean(axis=0)
        extra = np.einsum("nd,nd->n", gradient - self.gradient[own], self.y)
        return np.where(own >= 0, constant - self.constant[own] + extra, np.nan)

    @property
    def typical_regret(self) -> float:
        """Mean regret of one label's decision at another, which no sample changes; or 0."""
        known = self.regrets_of_others[np.isfinite(self.regrets_of_others)]
        return max(float(known.mean()), 0.0) if len(known) else 0.0

    def regrets_at(self, y_hat: Array) -> Array:
        """Return the regret of the cheapest known decision under predictions (n, D), or NaN."""
        costs = self._costs(y_hat - self.centre)
        cheapest = np.concatenate([each.argmin(axis=1) for _, each in costs])
        regrets = self.regrets(self._compared[cheapest][:, np.newaxis])[:, 0]
        return np.where(self.met[:, 0] >= 0, regrets, np.nan)

    def regrets(self, decisions: Index | None) -> Array:
        """Return what decisions (n, m), by default all, cost more at each instance than its own."""
        if not len(self):
            return np.zeros((len(self.y), 0) if decisions is None else decisions.shape)
        if decisions is None:
            cost = self.constant + self.y @ self.gradient.T
            cost -= np.take_along_axis(cost, self.met[:, :1], axis=1)
            return np.asarray(cost)
        costs = np.empty((len(decisions), 1 + decisions.shape[1]))
        for column, numbers in enumerate((self.met[:, 0], *decisions.T)):  # all would be too large
            extra = np.einsum("nd,nd->n", self.gradient[numbers], self.y)
            costs[:, column] = self.constant[numbers] + extra
        return np.asarray(costs[:, 1:] - costs[:, :1])

    def n_new(self, n_columns: int = 1) -> int:
        """Return how many answers of the last columns are decisions that no other answer has."""
        before, last = self.met[:, :-n_columns], self.met[:, -n_columns:]
        return int((~np.isin(last[last >= 0], before)).sum())

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
        allowed = None if self.is_allowed is None else self.is_allowed[:, self._compared]
        for start in range(0, len(points), _N_PER_STEP):
            rows = slice(start, start + _N_PER_STEP)
            costs = constant + points[rows] @ gradient.T
            yield start, costs if allowed is None else np.where(allowed[rows], costs, _FORBIDDEN)

    def nearest(self, y_hat: Array | None, n: int) -> Index:
        """Return the decisions that matter most to each instance, shape (n, m), all different.

        These are its own and the `n` cheapest under its label. With predictions (n, D) come the `n`
        cheapest under the prediction, which the model might take, and under the point as far beyond
        it as the label is before, where hinges are highest. The decision of the label itself comes
        first, and also pads the row.
        """
        key = b"%d " % n + (b"" if y_hat is None else y_hat.tobytes())
        if key not in self._nearest:  # the losses of a round need the same decisions
            self._nearest.clear()
            self._nearest[key] = self._find_nearest(y_hat, n)
        return self._nearest[key]

    def _find_nearest(self, y_hat: Array | None, n: int) -> Index:
        points = [self.y] if y_hat is None else [self.y, y_hat - self.centre]
        n_taken, n_near, others = min(n, len(self._compared)), [], []
        for parts in zip(*map(self._costs, points), strict=True):
            rows = np.arange(len(parts[0][1]))[:, np.newaxis]
            numbers = parts[0][0] + rows[:, 0]
            met = self.met[numbers]
            is_near = np.zeros((len(rows), len(self) + 1), dtype=bool)  # the last is no decision
            of_points = [costs for _, costs in parts]
            of_points += [2 * costs - of_points[0] for costs in of_points[1:]]  # beyond predictions
            for costs in of_points:
                cheapest = np.argpartition(costs, n_taken - 1, axis=1)[:, :n_taken]
                is_near[rows, self._compared[cheapest]] = True
            if self.is_allowed is not None:
                is_near[:, :-1] &= self.is_allowed[numbers]
            is_near[rows, met] = True
            is_near[rows, met[:, :1]] = is_near[:, -1:] = False
            n_near.append(is_near.sum(axis=1))
            others.append(np.nonzero(is_near)[1])
        n_others = np.concatenate(n_near)
        near = np.repeat(self.met[:, :1], 1 + n_others.max(), axis=1)
        near[:, 1:][np.arange(n_others.max()) < n_others[:, np.newaxis]] = np.concatenate(others)
        return near


def _steps(gradient: Array, y: Array, cost: Array) -> tuple[float, float]:
    """Return the sizes below which two gradients, and two constants, are the same."""
    # Gradients may be differences of large costs, which lose digits. Constants lose them, too.
    size, largest = np.abs(gradient).max(initial=0.0) or 1.0, float(np.abs(cost).max())
    scale = float(y.std(axis=0).max(initial=0.0)) or 1.0
    lost = min(_NOISE * largest / (_STEP * scale * size), _MAX_LOST)
    of_constants = max(_TOLERANCE * float(np.ptp(cost)), _NOISE * largest)
    if lost > _TOLERANCE:
        of_constants = max(of_constants, lost * size * scale)
    return size * max(_TOLERANCE, lost), of_constants or 1.0
