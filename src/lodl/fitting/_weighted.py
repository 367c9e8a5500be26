"""Fits of the families with a weight per coordinate."""

import numpy as np

from lodl._typing import Array
from lodl.fitting._nnls import solve_nnls
from lodl.fitting._standardised import with_typical
from lodl.losses import DirectedWeightedMSE, WeightedMSE


def fit_weighted_mse(family: WeightedMSE, d: Array, regret: Array) -> dict[str, Array]:
    """Solves the non-negative least squares problem, then lifts weights to the floor."""
    squares = np.square(d)
    w = solve_nnls(squares, regret)
    return {"w": np.maximum(w, family.min_weight * _mean_weight(w, squares.mean(axis=0)))}


def fit_directed_weighted_mse(
    family: DirectedWeightedMSE, d: Array, regret: Array
) -> dict[str, Array]:
    """Solves the non-negative least squares problem, then lifts weights to the floor."""
    squares = directed_squares(d)
    w = solve_nnls(squares, regret).reshape(2, -1)
    mean_square = squares.mean(axis=0).reshape(2, -1).sum(axis=0)
    w = np.maximum(w, family.min_weight * _mean_weight(w, mean_square))
    return {"w_plus": w[0], "w_minus": w[1]}


def _mean_weight(w: Array, mean_square: Array) -> Array:
    """Returns the mean weight of errors of size one, in each coordinate's own units, shape (D,)."""
    unit = np.square(with_typical(np.sqrt(mean_square)))
    return np.asarray((w * unit).mean() / unit)


def directed_squares(d: Array) -> Array:
    """Returns the squares of over- and under-predictions side by side, shape (K, 2 D)."""
    n_columns = d.shape[1]
    squares = np.empty((len(d), 2 * n_columns))
    np.square(np.maximum(d, 0.0), out=squares[:, :n_columns])
    np.square(np.minimum(d, 0.0), out=squares[:, n_columns:])
    return squares
