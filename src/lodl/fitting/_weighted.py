"""Fits of the families with a weight per coordinate."""

import numpy as np

from lodl.fitting._nnls import solve_nnls
from lodl.losses import DirectedWeightedMSE, WeightedMSE
from lodl.typing import Array


def fit_weighted_mse(family: WeightedMSE, d: Array, regret: Array) -> dict[str, Array]:
    """Solves the non-negative least squares problem, then lifts weights to the floor."""
    w = solve_nnls(np.square(d), regret)
    return {"w": np.maximum(w, family.min_weight * w.mean())}


def fit_directed_weighted_mse(
    family: DirectedWeightedMSE, d: Array, regret: Array
) -> dict[str, Array]:
    """Solves the non-negative least squares problem, then lifts weights to the floor."""
    w = solve_nnls(directed_squares(d), regret)
    w_plus, w_minus = np.split(np.maximum(w, family.min_weight * w.mean()), 2)
    return {"w_plus": w_plus, "w_minus": w_minus}


def directed_squares(d: Array) -> Array:
    """Returns the squares of over- and under-predictions side by side, shape (K, 2 D)."""
    n_columns = d.shape[1]
    squares = np.empty((len(d), 2 * n_columns))
    np.square(np.maximum(d, 0.0), out=squares[:, :n_columns])
    np.square(np.minimum(d, 0.0), out=squares[:, n_columns:])
    return squares
