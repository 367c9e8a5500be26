"""Decisions that the solver made for any instance, and what each would cost at every other."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl._typing import Array

Index = npt.NDArray[np.intp]

_AT_ONCE = 256  # instances whose costs are compared with all decisions at once


@dataclass(frozen=True, eq=False)
class DecisionPool:
    """The distinct decisions met at all instances, each known at every label.

    Without a context the solver sees nothing but the prediction, so a decision that it made for one
    instance is one that it could make for any other. If the objective is affine in the label, a
    single answer tells what decision k costs under any label v:

        cost_k(v) = constant_k + gradient_k . v

    So every instance knows the decisions of all others, for no further solver call.

    Attributes:
        y: Labels, flattened, shape (n, D).
        gradient: Derivative of each decision's cost by the label, shape (P, D).
        constant: Its cost less that of the label, shape (P,).
        met: The decision of each candidate of each instance, that for the label first, -1 where the
            call failed, shape (n, 1 + K).
    """

    y: Array
    gradient: Array
    constant: Array
    met: Index

    @classmethod
    def of(cls, y: Array, loss: Array, gradient: Array, decision: Index) -> "DecisionPool":
        """Return the pool of answers.

        Args:
            y: Labels, flattened, shape (n, D).
            loss: The cost of each candidate's decision under its own label, shape (n, 1 + K).
            gradient: Derivatives by the label, shape (M, D).
            decision: Each candidate's row of `gradient`, -1 if its call failed, shape (n, 1 + K).
        """
        is_known = decision >= 0
        rows, _ = np.nonzero(is_known)
        of_each = gradient[decision[is_known]]
        constant = loss[is_known] - np.einsum("kd,kd->k", of_each, y[rows])
        # A constant is a difference, so its rounding is that of the costs.
        sizes = np.abs(of_each).max(initial=0.0), np.abs(loss[is_known]).max(initial=0.0)
        keys = np.column_stack([_rounded(of_each, sizes[0]), _rounded(constant, sizes[1])])
        # Rows of bytes sort several times faster than rows of numbers.
        as_bytes = np.ascontiguousarray(keys).view(
            np.dtype((np.void, keys.itemsize * keys.shape[1]))
        )
        _, first, number = np.unique(as_bytes.reshape(-1), return_index=True, return_inverse=True)
        met = np.full(decision.shape, -1, dtype=np.intp)
        met[is_known] = number.reshape(-1)
        return cls(y, of_each[first], constant[first], met)

    def __len__(self) -> int:
        return len(self.constant)

    def own_regrets(self) -> Array:
        """Return the regret of each instance's own candidates, NaN where unknown, shape (n, K)."""
        regret = self.regrets(np.arange(len(self.y)), self.met.clip(min=0))
        return np.where((self.met >= 0) & (self.met[:, :1] >= 0), regret, np.nan)[:, 1:]

    def regrets(self, rows: Index, decisions: Index) -> Array:
        """Return what decisions, shape (len(rows), m), cost more than the rows' own best ones."""
        both = np.column_stack([self.met[rows, 0], decisions])
        cost = self.constant[both] + np.einsum("nkd,nd->nk", self.gradient[both], self.y[rows])
        return np.asarray(cost[:, 1:] - cost[:, :1])

    def regrets_at(self, y_hat: Array) -> Array:
        """Return the regret of the cheapest known decision under each prediction, shape (n,).

        It is NaN where the label's own decision is unknown.

        Args:
            y_hat: A prediction for each instance, shape (n, D).
        """
        cheapest = np.empty(len(self.y), dtype=np.intp)
        for start in range(0, len(self.y), _AT_ONCE):
            here = slice(start, start + _AT_ONCE)
            cheapest[here] = np.argmin(self.constant + y_hat[here] @ self.gradient.T, axis=1)
        regret = self.regrets(np.arange(len(self.y)), cheapest[:, np.newaxis])[:, 0]
        return np.where(self.met[:, 0] >= 0, regret, np.nan)

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
        points = [self.y] if y_hat is None else [self.y, y_hat, 2 * y_hat - self.y]
        chosen: list[Index] = []
        for start in range(0, len(self.y), _AT_ONCE):
            here = slice(start, start + _AT_ONCE)
            met = self.met[here]
            # One column more than there are decisions, for calls that failed: -1 is its place.
            is_near = np.zeros((len(met), len(self) + 1), dtype=np.bool_)
            for at in points:
                cost = self.constant + at[here] @ self.gradient.T
                cheapest = np.argpartition(cost, min(n, len(self)) - 1, axis=1)[:, :n]
                np.put_along_axis(is_near, cheapest, values=True, axis=1)
            np.put_along_axis(is_near, met, values=True, axis=1)
            np.put_along_axis(is_near, met[:, :1], values=False, axis=1)
            chosen.extend(np.flatnonzero(row) for row in is_near[:, :-1])
        return chosen


def _rounded(values: Array, size: float) -> Array:
    """Return numbers to nine digits of their size: what a solver's rounding changes vanishes."""
    return np.round(values / (size or 1.0), 9) + 0.0  # no -0.0, whose bytes differ
