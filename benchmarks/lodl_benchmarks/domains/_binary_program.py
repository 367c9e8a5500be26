"""Programs of zeros and ones, solved by HiGHS."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from lodl._typing import Array
from lodl.errors import ProblemError


def cheapest(costs: Array, constraints: Sequence[LinearConstraint]) -> Array:
    """Return the vector of zeros and ones of least cost within the constraints, exactly."""
    solution = milp(
        costs,
        constraints=constraints,
        integrality=np.ones(len(costs), dtype=np.int8),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    if solution.status != 0 or solution.x is None:
        raise ProblemError(f"HiGHS found no optimal decision: {solution.message}")
    z: Array = np.rint(solution.x)
    return z
