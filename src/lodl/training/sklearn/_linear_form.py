"""scikit-learn's linear models as weights that can be trained on a learned loss.

However they were fitted, they predict `z @ weights + constant` from transformed features z. The
trained model is the user's estimator, with other numbers in `coef_` and `intercept_`.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import linear_model
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline

from lodl._typing import Array, Masks
from lodl.losses import LearnedLoss
from lodl.training._features import as_rows
from lodl.training._pulled import Pulled
from lodl.training.linear import Descent, Standardised

_CLOSE = 1e-6  # share of the largest prediction: rounding errors of a linear model


@dataclass(frozen=True, eq=False)
class LinearForm:
    """Fitted models that predict `z @ weights + constant`."""

    models: Sequence[Any]  # one for all outputs, or one for each, with the same features z
    weights: Array  # one row per feature, one column per output
    constant: Array

    @classmethod
    def of(cls, models: Sequence[Any], x: Any) -> "LinearForm | None":
        """Return the form of fitted models, None if they must stay positive or differ from it."""
        models = [part for model in models for part in _parts(model)]
        last = [_regressor(model) for model in models]
        if not all(hasattr(part, "coef_") and hasattr(part, "intercept_") for part in last):
            return None
        if any(getattr(part, "positive", False) for part in last):
            return None
        weights = np.column_stack([np.atleast_2d(part.coef_).T for part in last])
        constants = [np.broadcast_to(part.intercept_, _n_outputs(part)) for part in last]
        form = cls(models, weights, np.concatenate(constants))
        z = form.transformed(x)
        if z.shape[1] != len(weights):
            return None
        expected = np.column_stack([model.predict(as_rows(x)) for model in models])
        gap = np.abs(z @ weights + form.constant - expected).max()
        return form if gap <= _CLOSE * np.abs(expected).max() else None

    @property
    def has_constant(self) -> bool:
        """Whether a constant was fitted."""
        return bool(self.constant.any())

    def transformed(self, x: Any) -> Array:
        """Return the features that the weights apply to, one row per instance or item."""
        rows, model = as_rows(x), self.models[0]
        if isinstance(model, Pipeline) and len(model) > 1:
            rows = model[:-1].transform(rows)
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        return np.asarray(dense, dtype=np.float64)

    def penalty(self, n_rows: int) -> Array:
        """Return the ridge penalty of each weight, or one of the same slope as its L1 penalty."""
        by_output = [part for part in map(_regressor, self.models) for _ in range(_n_outputs(part))]
        columns = zip(by_output, self.weights.T, strict=True)
        return np.array([_penalty(part, weights, n_rows) for part, weights in columns]).T

    def changed(self, weights: Array, constant: Array) -> list[Any]:
        """Return copies of the models with other weights."""
        models, first = [], 0
        for model in self.models:
            columns = slice(first, first + _n_outputs(_regressor(model)))
            models.append(_changed(model, weights[:, columns].T, constant[columns]))
            first = columns.stop
        return models


def descend(
    forms: list[LinearForm], x: Any, loss: LearnedLoss, masks: Masks, n_steps: int, *, stops: bool
) -> list[tuple[list[Any], int]]:
    """Train the form of each mask further on a loss. Returns models and steps of each form.

    Weights that are 0 stay 0: features that a lasso left out, and a constant that was not fitted.
    """
    zs = [form.transformed(x) for form in forms]
    if len({z.shape for z in zs}) > 1:  # such as the categories of a fold: one after another
        return [
            descend([form], x, loss, masks[[k]], n_steps, stops=stops)[0]
            for k, form in enumerate(forms)
        ]
    data, starts, is_free = [], [], []
    for form, z, mask in zip(forms, zs, masks, strict=True):
        part = Standardised(z, loss.y, mask, has_constant=form.has_constant)
        slopes = form.weights * part.features.spread[:, np.newaxis]
        constant = form.constant + part.features.centre @ form.weights - part.labels.centre
        data.append(part)
        starts.append(np.vstack([slopes, constant]) / part.labels.spread)
        is_free.append(np.vstack([form.weights != 0, np.full(constant.shape, form.has_constant)]))
    descent, free = Descent(data, loss, masks), np.stack(is_free)
    trained, steps = descent.run(np.stack(starts), n_steps, stops=stops, is_free=free)
    results = []
    for form, part, w, step in zip(forms, data, trained, steps.tolist(), strict=True):
        weights, at_centre = part.coefficients(w)
        moved = at_centre - part.features.centre @ weights
        constant = moved if form.has_constant else form.constant
        results.append((form.changed(weights, constant), step))
    return results


def pull(
    forms: Sequence[LinearForm], x: Any, loss: LearnedLoss, masks: Masks
) -> list[tuple[list[Any], int]]:
    """Train forms further, as `descend` does, on a convex loss, pulled to the plain model."""
    trained = []
    for form, mask in zip(forms, masks, strict=True):
        rows = form.transformed(x)
        rows = rows[np.repeat(mask, len(rows) // loss.n_instances)]
        pulled = Pulled(
            rows,
            loss.subset(np.flatnonzero(mask)),
            form.weights,
            form.constant,
            has_constant=form.has_constant,
            penalty=form.penalty(len(rows)),
            is_free=form.weights != 0,
        )
        weights, constant, steps = pulled.train()
        trained.append((form.changed(weights, constant), steps))
    return trained


def mean_model(models: Sequence[Any]) -> Any:
    """Return one model with the mean weights of several that have no transformed features."""
    weights = np.mean([np.atleast_2d(model.coef_) for model in models], axis=0)
    constant = np.mean([np.atleast_1d(model.intercept_) for model in models], axis=0)
    return _changed(models[0], weights, constant)


def _penalty(regressor: Any, weights: Array, n_rows: int) -> Array:
    """Return the ridge penalty of one output's weights; 0 if the regressor has none that we know.

    Elastic nets minimise |y - x w|^2 / (2 n) + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2).
    """
    alpha = getattr(regressor, "alpha_", getattr(regressor, "alpha", 0.0))
    if not isinstance(alpha, float | int | np.number) or not np.isfinite(alpha):
        return np.zeros_like(weights)
    if isinstance(regressor, linear_model.Ridge | linear_model.RidgeCV):
        return np.full_like(weights, alpha / n_rows)
    fixed_nets = linear_model.ElasticNet | linear_model.MultiTaskElasticNet
    if isinstance(regressor, fixed_nets | linear_model.LassoCV | linear_model.ElasticNetCV):
        l1 = getattr(regressor, "l1_ratio_", getattr(regressor, "l1_ratio", 1.0))
        size = np.where(weights != 0, np.abs(weights), np.inf)
        return np.asarray(alpha * (l1 / size + (1 - l1)))
    return np.zeros_like(weights)


def _parts(model: Any) -> list[Any]:
    """Return the models that predict inside a model: the best of a search, one per output."""
    if isinstance(model, Pipeline):
        return [_with_regressor(model, part) for part in _parts(_regressor(model))]
    if hasattr(model, "best_estimator_"):
        return _parts(model.best_estimator_)
    if isinstance(model, MultiOutputRegressor):
        return [part for estimator in model.estimators_ for part in _parts(estimator)]
    return [model]


def _regressor(model: Any) -> Any:
    """Return the last step of a pipeline, or a regressor itself."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _changed(model: Any, weights: Array, constant: Array) -> Any:
    """Return a copy of a model with other weights, one row per output, and another constant."""
    regressor = copy(_regressor(model))
    regressor.coef_ = weights.reshape(regressor.coef_.shape)
    if np.any(regressor.intercept_):
        shape = np.shape(regressor.intercept_)
        regressor.intercept_ = constant.reshape(shape) if shape else float(constant[0])
    return _with_regressor(model, regressor) if isinstance(model, Pipeline) else regressor


def _with_regressor(pipeline: Pipeline, regressor: Any) -> Pipeline:
    """Return a fitted pipeline that ends in another fitted regressor."""
    changed = copy(pipeline)
    changed.steps = [*pipeline.steps[:-1], (pipeline.steps[-1][0], regressor)]
    return changed


def _n_outputs(regressor: Any) -> int:
    return len(np.atleast_2d(regressor.coef_))
