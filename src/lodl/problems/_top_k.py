"""Choosing the best of many items."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, InstanceContext
from lodl._validation import check_count, check_labels
from lodl.errors import InvalidInputError
from lodl.problems._problem import VectorisedProblem


@dataclass(frozen=True)
class TopK(VectorisedProblem):
    """Choose `budget` of N items to gain the most utility (the paper's Linear Model domain).

        max_z  sum_i z_i y_i,   z_i in {0, 1},   sum_i z_i = budget

    A label has shape (N,), a decision is a vector of N zeros and ones. Of equal items the first is
    taken. There is no context.

    Attributes:
        budget: How many items are chosen.
    """

    budget: int = 1
    sense = "max"

    def __post_init__(self) -> None:
        check_count("budget", self.budget)

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        if y_hats.ndim != 2 or y_hats.shape[1] < self.budget:
            raise InvalidInputError(
                f"A prediction must be a vector of at least `budget` = {self.budget} utilities, "
                f"got shape {y_hats.shape[1:]}."
            )
        zs = np.zeros(y_hats.shape)
        zs[np.arange(len(zs))[:, np.newaxis], _best(y_hats, self.budget)] = 1.0
        return zs

    def objective_many(self, zs: Any, y: Array, context: InstanceContext = None) -> Array:
        # Not `zs @ y`: BLAS may add in another order when the number of rows changes.
        gains: Array = np.ascontiguousarray(zs * y).sum(axis=1)
        return gains


def _best(y_hats: Array, budget: int) -> npt.NDArray[np.intp]:
    """Returns the positions of the `budget` largest numbers of each row, the first among equals."""
    if budget == 1:  # several times faster than a partition
        first: npt.NDArray[np.intp] = y_hats.argmax(axis=1, keepdims=True)
        return first
    n_items = y_hats.shape[1]
    best = np.argpartition(y_hats, n_items - budget, axis=1)[:, n_items - budget :]
    # A partition takes any of the items that tie for the last place: sort those rows instead.
    last = np.take_along_axis(y_hats, best, axis=1).min(axis=1, keepdims=True)
    tied = (y_hats >= last).sum(axis=1) > budget
    best[tied] = np.argsort(-y_hats[tied], axis=1, kind="stable")[:, :budget]
    return best
