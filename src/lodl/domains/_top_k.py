"""TopK: choose the items of most utility. The problem of the paper's first domain."""

from dataclasses import dataclass

import numpy as np

from lodl._arrays import check_count, check_labels
from lodl._typing import Array, InstanceContext
from lodl.errors import InvalidInputError
from lodl.problems import LinearProblem


@dataclass(frozen=True)
class TopK(LinearProblem):
    """Choose `budget` of N items to gain the most utility (the paper's Linear Model domain).

        max_z  sum_i z_i y_i,   z_i in {0, 1},   sum_i z_i = budget

    A label has shape (N,), a decision is a vector of N zeros and ones. Of equal items the first is
    taken. There is no context.
    """

    budget: int = 1  #: Number of items to choose.
    sense = "max"

    def __post_init__(self) -> None:
        check_count("budget", self.budget)

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        if y_hats.ndim != 2 or y_hats.shape[1] < self.budget:
            wanted = f"a vector of at least `budget` = {self.budget} utilities"
            raise InvalidInputError(f"A prediction must be {wanted}, got shape {y_hats.shape[1:]}.")
        if self.budget == 1:  # many times faster than to sort
            best = y_hats.argmax(axis=1, keepdims=True)
        else:
            best = np.argsort(-y_hats, axis=1, kind="stable")[:, : self.budget]
        zs = np.zeros(y_hats.shape)
        np.put_along_axis(zs, best, 1.0, axis=1)
        return zs
