"""Least-squares solvers of the fits: non-negative least squares, and L-BFGS.

With 50 samples most of a fit's time is spent in SciPy's steps and not in the objective: 13 ms an
instance for `ConvexDirectedQuadratic` at D = 50 (speed/fit_solvers.py). Steps that NumPy takes for
300 instances at once need a tenth (D = 10) to a quarter (D = 40) of the time. But that fit is not
convex in the hinges, and 22 to 43 % of the instances end in a different local optimum, of the same
value on average (speed/batched_fits.py): every recorded result of the family would change to save
two seconds per 300 instances.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lodl._typing import Array

Objective: TypeAlias = Callable[[Array], tuple[float, Array]]
"""Half the mean squared residual of standardised regrets, and its gradient."""

_TOLERANCE = 1e-10  # violation of an optimality condition, columns and target having length 1
_MAX_EXCHANGES = 100  # far more than are ever needed; then Lawson and Hanson's method takes over
_SMALLEST, _LARGEST = 1e-75, 1e75  # sizes whose squares are ordinary numbers
_PATIENCE = 3  # exchanges without progress before variables move one by one


def solve_nnls(
    columns: Array, target: Array, *, ridge: float = 0.0, towards: Array | float = 0.0
) -> Array:
    r"""Return the optimum of a least-squares problem over non-negative weights.

        min_w |P w - t|^2 + ridge |w - towards|^2,   w >= 0

    Block principal pivoting on the Gram matrix (Judice and Pires, 1994; Kim and Park, 2011): guess
    which weights are positive, solve for them, and exchange all that break an optimality
    condition. Each exchange is one Cholesky solve, and few are needed for any number of weights. If
    the Gram matrix is singular (fewer samples than weights), a ridge of the size of its rounding
    error picks one of the optima.

    SciPy's `nnls` is several times faster with fewer samples than weights and no ridge (50 samples,
    100 weights: 0.3 ms instead of 1.2), but may pick a different optimum, and published fits would
    change. With a ridge, the default, it is faster for a few dozen weights, for which both take a
    fraction of a millisecond; at 100 weights they take 0.6 and 0.7 ms, and at 528 this function is
    two to four times as fast: speed/fit_solvers.py.

    Args:
        columns: P, shape (K, n).
        target: t, shape (K,).
        ridge: Strength of the penalty, at least 0.
        towards: Weights without a penalty, shape (n,).
    """
    unit = float(columns.max(initial=0.0)) or 1.0
    if not _SMALLEST < unit < _LARGEST:  # its square would not be a number
        ridge, towards = ridge / unit / unit, towards * unit
        return solve_nnls(columns / unit, target, ridge=ridge, towards=towards) / unit
    gram, moments = columns.T @ columns, columns.T @ target + ridge * towards
    gram[np.diag_indices_from(gram)] += ridge
    return solve_nnls_of_gram(gram, moments, float(np.linalg.norm(target)) or 1.0)


def solve_nnls_of_gram(gram: Array, moments: Array, target_length: float) -> Array:
    """Return the w >= 0 that minimises w'Gw - 2 m'w.

    Args:
        gram: G = P'P, shape (n, n).
        moments: m = P't, shape (n,).
        target_length: Length of t: the unit of the optimality conditions.
    """
    length = np.sqrt(gram.diagonal())
    length = np.where(length > 0, length, 1.0)
    gram = gram / np.outer(length, length)
    gram[np.diag_indices_from(gram)] += 100 * len(gram) * np.finfo(float).eps
    w = _pivot(gram, moments / (length * target_length))
    return w * target_length / length


def _pivot(gram: Array, moments: Array) -> Array:
    is_positive = moments > 0
    fewest, patience = len(moments) + 1, _PATIENCE
    for _ in range(_MAX_EXCHANGES):
        w, slack = _solve_for(is_positive, gram, moments)
        is_wrong = np.where(is_positive, w, slack) < -_TOLERANCE
        n_wrong = int(is_wrong.sum())
        if n_wrong == 0:
            return np.maximum(w, 0.0)
        if n_wrong < fewest:
            fewest, patience = n_wrong, _PATIENCE
        elif patience > 0:
            patience -= 1
        else:  # Murty's rule: exchange only the last variable, which cannot cycle
            is_wrong[: np.flatnonzero(is_wrong)[-1]] = False
        is_positive = is_positive ^ is_wrong
    return _lawson_hanson(gram, moments)


def _lawson_hanson(gram: Array, moments: Array) -> Array:
    """Solve by SciPy's slower method, which always ends."""
    from scipy.linalg import cholesky, solve_triangular
    from scipy.optimize import nnls

    upper = cholesky(gram)
    return np.asarray(nnls(upper, solve_triangular(upper, moments, trans=1))[0])


def _solve_for(
    is_positive: npt.NDArray[np.bool_], gram: Array, moments: Array
) -> tuple[Array, Array]:
    """Solve for the positive weights. Return all weights, and the gradient by the zero weights."""
    from scipy.linalg import cho_factor, cho_solve  # slow to import

    w = np.zeros_like(moments)
    if is_positive.any():
        free = np.flatnonzero(is_positive)
        w[free] = cho_solve(cho_factor(gram[np.ix_(free, free)]), moments[free])
    return w, np.where(is_positive, 0.0, gram @ w - moments)


def minimise(
    objective: Objective,
    start: Array,
    *,
    tolerance: float,
    max_iterations: int,
    lower: Array | None = None,
) -> Array:
    """Return the parameters at which L-BFGS stops.

    Args:
        objective: Value and gradient at parameters of shape (n,). The value is about 1/2 if nothing
            is explained, so `tolerance` needs no scale.
        start: First parameters, shape (n,).
        tolerance: Stop when an iteration gains less than this.
        max_iterations: Stop after this number of iterations.
        lower: Lower bounds, shape (n,).
    """
    from scipy.optimize import Bounds, minimize  # slow to import

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
