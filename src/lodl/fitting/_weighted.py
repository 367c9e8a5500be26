"""Fits of the families with a weight per coordinate."""

import numpy as np

from lodl.fitting._nnls import solve_nnls
from lodl.fitting._standardised import Standardised
from lodl.losses import DirectedWeightedMSE, WeightedMSE
from lodl.typing import Array


def fit_weighted_mse(family: WeightedMSE, d: Array, regret: Array) -> dict[str, Array]:
    """Solves the non-negative least squares problem, then lifts weights to the floor."""
    data = Standardised.of(d, regret)
    w = solve_nnls(np.square(data.d), data.regret)
    return {"w": data.weights(np.maximum(w, family.min_weight * w.mean()))}


def fit_directed_weighted_mse(
    family: DirectedWeightedMSE, d: Array, regret: Array
) -> dict[str, Array]:
    """Solves the non-negative least squares problem, then lifts weights to the floor."""
    data = Standardised.of(d, regret)
    w = solve_nnls(directed_squares(data.d), data.regret)
    w_plus, w_minus = np.split(np.maximum(w, family.min_weight * w.mean()), 2)
    return {"w_plus": data.weights(w_plus), "w_minus": data.weights(w_minus)}


def directed_squares(d: Array) -> Array:
    """Returns the squares of over- and under-predictions side by side, shape (K, 2 D)."""
    n_columns = d.shape[1]
    squares = np.empty((len(d), 2 * n_columns))
    np.square(np.maximum(d, 0.0), out=squares[:, :n_columns])
    np.square(np.minimum(d, 0.0), out=squares[:, n_columns:])
    return squares
