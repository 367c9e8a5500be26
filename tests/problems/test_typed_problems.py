# mypy: enable-error-code="override", disallow-untyped-defs, disallow-incomplete-defs
"""Problems as a user with type hints writes them. `make lint` checks their types strictly."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import lodl
from lodl.problems import VectorisedProblem

Array = npt.NDArray[np.float64]


class Cheapest(lodl.Problem):
    sense = "min"

    def solve(self, y_hat: Array, context: Any) -> int:
        return int(y_hat.argmin())

    def objective(self, z: int, y: Array, context: Any) -> float:
        return float(y[z])

    def slope(self, z: int, y: Array, context: Any) -> Array:
        return np.eye(len(y))[z]


class CheapestVector(lodl.LinearProblem):
    sense = "min"

    def solve(self, y_hat: Array, context: Any) -> Array:
        return np.eye(len(y_hat))[y_hat.argmin()]


class CheapestVectors(lodl.LinearProblem):
    sense = "min"

    def solve_many(self, y_hats: Array, context: Any) -> Array:
        return np.eye(y_hats.shape[1])[y_hats.argmin(axis=1)]


class CheapestOfMany(VectorisedProblem):
    sense = "min"

    def solve_many(self, y_hats: Array, context: Any) -> npt.NDArray[np.intp]:
        return y_hats.argmin(axis=1)

    def objective_many(self, zs: npt.NDArray[np.intp], y: Array, context: Any) -> Array:
        return y[zs]


@pytest.mark.parametrize("kind", [Cheapest, CheapestVector, CheapestVectors, CheapestOfMany])
def test_a_problem_with_type_hints_has_the_signatures_of_its_base(kind: type[lodl.Problem]) -> None:
    problem, y = kind(), np.array([3.0, 1.0, 2.0])
    assert problem.objective(problem.solve(y, None), y, None) == 1.0
