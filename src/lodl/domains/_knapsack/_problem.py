"""The problem: pack the items of most value."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import LinearConstraint

from lodl._arrays import check_count, check_labels
from lodl._typing import Array, InstanceContext
from lodl.domains._binary_program import cheapest
from lodl.domains._knapsack._dynamic_program import best_packing
from lodl.domains._knapsack._subsets import best_subset, subsets_that_fit
from lodl.errors import InvalidInputError
from lodl.problems import LinearProblem

_LARGEST_TABLE = 2**25  # entries: 32 MB a prediction


@dataclass(frozen=True)
class Knapsack(LinearProblem):
    """Choose items of the most value whose weights fit, in one dimension or in several.

        max_z  sum_i z_i y_i,   z_i in {0, 1},   sum_i w_di z_i <= capacity_d for every d

    A label has shape (N,), a decision is a vector of N zeros and ones. The weights are the same for
    all instances, or those of an instance are its context. Always exact:

    - one dimension, whole weights, and a capacity of no more than millions: dynamic programming;
    - otherwise, if at most `max_subsets` sets of items fit: all of them are tried;
    - otherwise: HiGHS, one prediction at a time, in milliseconds instead of microseconds.

    Attributes:
        capacity: Capacity in each dimension.
        weights: Positive weights, one row of N numbers per dimension; None if the context of an
            instance holds them, as an array (N,) or (dimensions, N).
        max_subsets: Largest number of sets to try.
    """

    capacity: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...] | None = None
    max_subsets: int = 100_000
    sense = "max"

    def __post_init__(self) -> None:
        check_count("max_subsets", self.max_subsets, minimum=0)
        if not all(0 < room < np.inf for room in self.capacity):
            raise InvalidInputError(f"`capacity` must be positive numbers, got {self.capacity}.")

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        weights = self._weights_of(context, y_hats.shape[1:])
        if len(weights) == 1 and not (weights % 1).any():
            room = int(min(self.capacity[0], weights.sum()))
            if room * y_hats.shape[1] <= _LARGEST_TABLE:
                return best_packing(y_hats, weights[0].astype(np.int64), room)
        rows = tuple(map(tuple, weights.tolist()))
        subsets = subsets_that_fit(rows, self.capacity, self.max_subsets)
        if subsets is not None:
            return best_subset(y_hats, subsets)
        within_capacity = LinearConstraint(weights, ub=self.capacity)
        return np.array([cheapest(-y_hat, [within_capacity]) for y_hat in y_hats])

    def _weights_of(self, context: InstanceContext, label_shape: tuple[int, ...]) -> Array:
        """Return the weights of an instance, shape (dimensions, N)."""
        given = context if self.weights is None else self.weights
        if given is None:
            raise InvalidInputError(
                "A knapsack needs weights: give `weights`, or the weights of each instance as its "
                "context."
            )
        weights = np.atleast_2d(np.asarray(given, dtype=np.float64))
        if weights.shape != (len(self.capacity), *label_shape):
            raise InvalidInputError(
                f"Weights must have shape {(len(self.capacity), *label_shape)}, a row per "
                f"dimension and a column per item of a prediction, got shape {weights.shape}."
            )
        if not ((weights > 0) & (weights < np.inf)).all():
            raise InvalidInputError("The weights of a knapsack must be positive numbers.")
        return weights
