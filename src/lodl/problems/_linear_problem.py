"""Problems whose objective is the inner product of decision and label."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lodl._typing import Array, Decision, InstanceContext
from lodl.errors import ShapeError
from lodl.problems._problem import Problem


class LinearProblem(Problem):
    """A problem whose objective is linear in the label.

        objective(z, y) = <z, y> = sum_i z_i y_i

    A subclass states its `sense` and writes one method: `solve`, or `solve_many` if the solver
    handles many predictions at once. Decision and label have the same shape. The slope of the
    objective is the decision itself, so losses that use slopes cost nothing extra.

    Example:
        >>> class Cheapest(lodl.LinearProblem):
        ...     sense = "min"
        ...     def solve(self, y_hat, context):
        ...         return np.eye(len(y_hat))[y_hat.argmin()]
        >>> Cheapest().objective(Cheapest().solve(np.array([3.0, 1.0]), None), np.array([3.0, 2.0]))
        2.0
    """

    def solve(self, y_hat: Array, context: InstanceContext = None) -> Decision:
        if not self.is_vectorised:
            raise NotImplementedError(f"{type(self).__name__} must write `solve` or `solve_many`.")
        return self.solve_many(np.asarray(y_hat)[np.newaxis], context)[0]

    def objective(self, z: Decision, y: Array, context: InstanceContext = None) -> float:
        return float(self.objective_many(np.asarray(z)[np.newaxis], y, context)[0])

    def objective_many(
        self, zs: Sequence[Decision] | Any, y: Array, context: InstanceContext = None
    ) -> Array:
        decisions = np.asarray(zs, dtype=np.float64)
        if decisions.shape[1:] != y.shape:
            raise ShapeError(
                f"A decision of a linear problem must have the label's shape {y.shape}, got "
                f"{decisions.shape[1:]}."
            )
        # Not `@`: BLAS rounds a row differently when the number of rows changes.
        products = np.ascontiguousarray(decisions * y).reshape(len(decisions), -1)
        values: Array = products.sum(axis=1)
        return values

    def slope(self, z: Decision, y: Array, context: InstanceContext = None) -> Array:
        return np.asarray(z, dtype=np.float64)
