"""The models that a practitioner would fit, for joint features and for items."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from lodl._typing import Array

_STRENGTHS = np.logspace(-2, 5, 15)  # of the ridge penalty


def make_model(name: str, x: Any) -> Any:
    """Return an estimator, not fitted.

    Columns of `x` that are not numbers are made such.
    """
    if name == "lightgbm":
        from lightgbm import LGBMRegressor

        return LGBMRegressor(
            n_estimators=200, learning_rate=0.05, num_leaves=15, n_jobs=1, verbose=-1
        )
    if name == "linear":
        return LinearRegression()
    if not isinstance(x, pd.DataFrame):
        return make_pipeline(StandardScaler(), RidgeCV(_STRENGTHS))
    texts = [column for column in x if not pd.api.types.is_numeric_dtype(x[column])]
    numbers = [column for column in x if column not in texts]
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer([("texts", encode, texts), ("numbers", StandardScaler(), numbers)])
    return make_pipeline(columns, RidgeCV(_STRENGTHS))


class Fitted:
    """An estimator fitted to labels of several numbers, or to those of items.

    One that takes a single output is fitted per number. Features have shape (n, p) or (n, items,
    p), or are a frame; labels have shape (n, D) or (n, items).
    """

    def __init__(self, estimator: Any, x: Any, y: Array) -> None:
        self._n_items = y.shape[1] if np.ndim(x) == 3 else None
        model = clone(estimator)
        if self._n_items is not None:
            self.model = model.fit(_rows(x), y.ravel())
        else:
            is_single = type(model).__name__ == "LGBMRegressor"
            self.model = (MultiOutputRegressor(model) if is_single else model).fit(x, y)

    def predict(self, x: Any) -> Array:
        """Return predictions of the labels' shape."""
        if self._n_items is None:
            return np.asarray(self.model.predict(x), dtype=np.float64)
        return np.asarray(self.model.predict(_rows(x)), np.float64).reshape(-1, self._n_items)


def _rows(x: Any) -> Array:
    return np.asarray(x).reshape(-1, np.shape(x)[2])


class PinballRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear quantile regression of several outputs, with a ridge penalty.

        mean_i sum_j pinball(y_ij - x_i w_j - b_j) / s_j + alpha |w / s|^2,

    where s_j is the deviation of a ridge's residuals, from which it starts. The kink is rounded to
    a width of 0.05 s_j, and features are whitened, or L-BFGS would stop early.

    Args:
        levels: Level of each output, or one level for all.
        alpha: Strength of the penalty.
    """

    def __init__(self, levels: float | Sequence[float] = 0.5, alpha: float = 1e-3) -> None:
        self.levels = levels
        self.alpha = alpha

    def fit(self, x: Array, y: Array) -> "PinballRegressor":
        """Fit to features (n, p) and labels (n, D)."""
        ridge = RidgeCV(_STRENGTHS).fit(x, y)
        residuals = y - ridge.predict(x)
        scale = residuals.std(axis=0)
        centred = x - x.mean(axis=0)
        factor = np.linalg.cholesky(centred.T @ centred / len(x) + self.alpha * np.eye(x.shape[1]))
        white = np.hstack([np.linalg.solve(factor, centred.T).T, np.ones((len(x), 1))])
        inverse = np.linalg.inv(factor)
        start = np.quantile(residuals / scale, np.mean(self.levels), axis=0)
        shape = (white.shape[1], y.shape[1])

        def objective(flat: Array) -> tuple[float, Array]:
            w = flat.reshape(shape)
            value, slope = _pinball(residuals / scale - white @ w, np.asarray(self.levels))
            raw = inverse.T @ w[:-1] + ridge.coef_.T / scale
            gradient = -white.T @ slope / len(x)
            gradient[:-1] += 2 * self.alpha * inverse @ raw
            return value.sum() / len(x) + self.alpha * (raw**2).sum(), gradient.ravel()

        first = np.zeros(shape)
        first[-1] = start
        found = minimize(
            objective, first.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 500}
        )
        w = found.x.reshape(shape)
        self.coef_ = (inverse.T @ w[:-1]) * scale + ridge.coef_.T
        self.intercept_ = y.mean(axis=0) + w[-1] * scale - x.mean(axis=0) @ self.coef_
        return self

    def predict(self, x: Array) -> Array:
        """Return quantiles, shape (n, D)."""
        return np.asarray(x @ self.coef_ + self.intercept_)


def _pinball(r: Array, level: Array, width: float = 0.05) -> tuple[Array, Array]:
    """Return the rounded pinball loss of residuals, and its derivative."""
    inside = np.clip(r / width, -1, 1)  # from level - 1 to level over [-width, width]
    slope = level - 0.5 + inside / 2
    value = slope * r + width * (1 - inside**2) / 4
    return value, slope
