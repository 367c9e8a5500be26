"""Staff for parts of a day, by predicted demands."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lodl._arrays import check_labels
from lodl._typing import Array, InstanceContext
from lodl.errors import InvalidInputError
from lodl.problems import VectorisedProblem


@dataclass(frozen=True)
class Staffing(VectorisedProblem):
    """Say how many people work in each shift of a day; all shifts are equally long.

        min_z  sum_s wage z_s + penalty sum_{t in s} max(y_t - rate z_s, 0)
        z_s in {0, 1, ...},   sum_s z_s <= limit

    A label is a vector (T,) of demands, a decision a vector of S whole numbers. The context of an
    instance is its limit, if the problem has none. Exact: the gain of a further person in a shift
    falls with the number of people there, so the people of the largest gains are taken.
    """

    n_shifts: int  # shifts S; a shift has T / S periods
    wage: float  # cost of a person for a shift
    penalty: float  # cost of a unit of demand that is not served
    rate: float  # demand that a person serves in a period
    # The most people, over all shifts; None if it is the context of an instance.
    limit: int | None = None
    sense = "min"

    def level(self, n_periods: int) -> float:
        """Return the quantile of the demand that is best for equal demands without a limit."""
        return 1 - self.wage * self.n_shifts / (self.penalty * self.rate * n_periods)

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        given: Any = context if self.limit is None else self.limit
        if given is None or y_hats.shape[1] % self.n_shifts:
            raise InvalidInputError(
                f"Staffing needs a limit, and predictions of a multiple of {self.n_shifts} "
                f"periods, got shape {y_hats.shape[1:]}."
            )
        limit = int(given)
        before = self.rate * np.arange(limit)
        left = y_hats.reshape(len(y_hats), self.n_shifts, 1, -1) - before[:, np.newaxis]
        gains = self.penalty * np.clip(left, 0, self.rate).sum(axis=3) - self.wage
        flat = np.maximum(gains, 0).reshape(len(y_hats), -1)  # shift by shift, falling
        best = np.argsort(-flat, axis=1, kind="stable")[:, :limit]
        is_taken = np.zeros(flat.shape, dtype=np.bool_)
        np.put_along_axis(is_taken, best, np.take_along_axis(flat, best, axis=1) > 0, axis=1)
        zs: Array = is_taken.reshape(gains.shape).sum(axis=2).astype(np.float64)
        return zs

    def objective_many(self, zs: Any, y: Array, context: InstanceContext = None) -> Array:
        staff = np.asarray(zs, dtype=np.float64)[:, :, np.newaxis]
        short = np.maximum(y.reshape(self.n_shifts, -1) - self.rate * staff, 0)
        costs: Array = self.wage * staff.sum(axis=(1, 2)) + self.penalty * short.sum(axis=(1, 2))
        return costs
