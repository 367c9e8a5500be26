"""SPO+ of a linear model over all paths of a grid, minimised to a tolerance."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

from lodl._typing import Array

_WIDTHS = (0.1, 0.01, 0.001)  # of the rounded kinks, in deviations of the labels
_OPTIONS: Any = {"maxiter": 3000, "maxfun": 6000, "maxcor": 30, "ftol": 1e-9, "gtol": 1e-7}


def spo_plus_weights(
    x: Array, y: Array, paths: Array, penalties: Sequence[float] = (0.0,)
) -> list[Array]:
    """Return the linear model that minimises SPO+ for each L1 penalty, the intercept first.

    The risk of weights W with predictions y_hat = (1, x) W is, with z*_i the best path for y_i,

        mean_i [ max_z (y_i - 2 y_hat_i) . z + 2 y_hat_i . z*_i - y_i . z*_i ] + penalty |W|_1,

    a maximum over all paths z; the intercept is not penalised. The maximum and the absolute values
    are rounded (log-sum-exp, hyperbola), minimised by L-BFGS from least squares, and made sharper
    until the rest does not matter. Without a penalty few instances leave many minimisers, whose
    decisions differ: linear programming returns a vertex, and this the one that rounding prefers.
    """
    unit = float((y - y.mean(axis=0)).std())
    risk = _Risk(_with_ones(x), y / unit, paths)
    weights = np.asarray(np.linalg.lstsq(risk.x, risk.y, rcond=None)[0], dtype=np.float64)
    found: list[Array] = []
    for penalty in penalties:
        for width in _WIDTHS:
            rounded = partial(risk, width=width, penalty=penalty)
            result = minimize(
                rounded, weights.ravel(), method="L-BFGS-B", jac=True, options=_OPTIONS
            )
            weights = np.asarray(result.x, dtype=np.float64).reshape(weights.shape)
        found.append(unit * weights)
    return found


def predict(weights: Array, x: Array) -> Array:
    """Return the predictions of a linear model."""
    return np.asarray(_with_ones(x) @ weights)


class _Risk:
    """The rounded risk and its gradient, labels in units of their deviation."""

    def __init__(self, x: Array, y: Array, paths: Array) -> None:
        self.x, self.y, self.paths = x, y, paths
        self.best = paths[(y @ paths.T).argmin(axis=1)]

    def __call__(self, flat: Array, width: float, penalty: float) -> tuple[float, Array]:
        weights = flat.reshape(self.x.shape[1], -1)
        y_hat, n = self.x @ weights, len(self.x)
        margins = (self.y - 2 * y_hat) @ self.paths.T
        highest = margins.max(axis=1, keepdims=True)
        share = np.exp((margins - highest) / width)
        total = share.sum(axis=1, keepdims=True)
        value = float((highest + width * np.log(total)).mean() + 2 * (y_hat * self.best).sum() / n)
        gradient = self.x.T @ (2 * (self.best - (share / total) @ self.paths)) / n
        if penalty:
            size = np.hypot(weights[1:], width / 3)
            value += penalty * float((size - width / 3).sum())
            gradient[1:] += penalty * weights[1:] / size
        return value, gradient.ravel()


def _with_ones(x: Array) -> Array:
    return np.column_stack([np.ones(len(x)), x])
