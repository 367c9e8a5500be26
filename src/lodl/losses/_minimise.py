"""L-BFGS on a least-squares objective.

With 50 samples most of a fit's time is spent in SciPy's own steps and not in the objective: 13 ms
an instance for `ConvexDirectedQuadratic` at D = 50 (speed/fit_solvers.py). Steps that NumPy takes
for 300 instances at once need a tenth (D = 10) to a quarter (D = 40) of the time. But the fit is
not convex in the hinges, and in 22 to 43 % of the instances they end in another local optimum, of
the same value on average (speed/batched_fits.py): every recorded result of the family would change
for two seconds saved per 300 instances, so it is left at that.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from lodl._typing import Array

Objective: TypeAlias = Callable[[Array], tuple[float, Array]]
"""Half the mean squared residual of standardised regrets, and its gradient."""


def minimise(
    objective: Objective,
    start: Array,
    *,
    tolerance: float,
    max_iterations: int,
    lower: Array | None = None,
) -> Array:
    """Return where L-BFGS stops.

    Args:
        objective: Value and gradient at parameters of shape (n,); about 1/2 where nothing is
            explained, so `tolerance` needs no scale.
        start: First parameters, shape (n,).
        tolerance: Stop when an iteration gains less than this.
        max_iterations: Stop after as many iterations.
        lower: Lower bounds, shape (n,).
    """
    from scipy.optimize import Bounds, minimize  # slow to import: only where a fit is made

    result = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=None if lower is None else Bounds(lower, np.inf),
        options={
            "ftol": tolerance,
            "gtol": 1e-9,
            "maxiter": max_iterations,
            "maxfun": 2 * max_iterations,
        },
    )
    return np.asarray(result.x)
