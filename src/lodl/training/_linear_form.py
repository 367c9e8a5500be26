"""scikit-learn's linear models, alone or at the end of a pipeline, as weights that can be trained.

Whatever they were fitted by (ridge, lasso, Huber, ...), they predict `z @ weights + constant` from
transformed features z. So a model can go on from its own solution on a learned loss itself, where
others are refitted to shifted labels. It stays the estimator that the user knows, with other
numbers in `coef_` and `intercept_`.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline

from lodl._typing import Array
from lodl.losses import LearnedLoss
from lodl.training._features import as_rows, count_items
from lodl.training._linear_descent import LEARNING_RATE, Descent
from lodl.training._scaling import Scaling

_CLOSE = 1e-6  # of the largest prediction: a linear model's own rounding


@dataclass(frozen=True, eq=False)
class LinearForm:
    """Fitted models that predict `z @ weights + constant`.

    Attributes:
        models: A model for all outputs, or one for each, with the same transformed features.
        weights: One row per transformed feature, one column per output.
        constant: One number per output.
    """

    models: Sequence[Any]
    weights: Array
    constant: Array

    @classmethod
    def of(cls, models: Sequence[Any], x: Any) -> "LinearForm | None":
        """Return the form of fitted models, None if they are not linear or must stay positive.

        Args:
            models: A regressor or pipeline for all outputs, or one for each.
            x: Features to try it on.
        """
        models = [part for model in models for part in _parts(model)]
        last = [_regressor(model) for model in models]
        if not all(hasattr(one, "coef_") and hasattr(one, "intercept_") for one in last):
            return None
        if any(getattr(one, "positive", False) for one in last):
            return None
        weights = np.column_stack([np.atleast_2d(one.coef_).T for one in last])
        constants = [np.broadcast_to(one.intercept_, _n_outputs(one)) for one in last]
        form = cls(models, weights, np.concatenate(constants))
        z = form.transformed(x)
        if z.shape[1] != len(weights):
            return None
        expected = np.column_stack([model.predict(as_rows(x)) for model in models])
        gap = np.abs(z @ weights + form.constant - expected).max()
        return form if gap <= _CLOSE * np.abs(expected).max() else None

    def transformed(self, x: Any) -> Array:
        """Return the features that the weights apply to, one row per instance or item."""
        rows, model = as_rows(x), self.models[0]
        if isinstance(model, Pipeline) and len(model) > 1:
            rows = model[:-1].transform(rows)
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        return np.asarray(dense, dtype=np.float64)

    def trained(
        self,
        x: Any,
        loss: LearnedLoss,
        is_trained: npt.NDArray[np.bool_],
        n_steps: int,
        patience: int | None,
    ) -> tuple[list[Any], int]:
        """Return models that went on from these on a loss, and the number of steps.

        What is exactly 0 stays so: features that a lasso left out, and a constant that was not
        fitted. Early stopping keeps the rest near a regularised start.

        Args:
            x: Features.
            loss: The loss of all instances.
            is_trained: Which instances to train on; the others stop the training, shape (n,).
            n_steps: The most steps.
            patience: Steps without a better held-out loss after which to stop; None does not stop.
        """
        n_items, z = count_items(x, loss.y), self.transformed(x)
        has_constant = bool(self.constant.any())
        features = Scaling.of_features(z[np.repeat(is_trained, n_items or 1)])
        labels = Scaling.of_labels(loss.y[is_trained], n_items)
        if not has_constant:
            features, labels = features.around_zero(), labels.around_zero()
        centre, spread = (
            np.broadcast_to(values, loss.label_shape).reshape(-1)[: self.weights.shape[1]]
            for values in (labels.centre, labels.spread)
        )
        constant = self.constant + features.centre @ self.weights - centre
        start = np.vstack([self.weights * features.spread[:, np.newaxis], constant]) / spread
        is_free = np.vstack([self.weights != 0, np.full_like(constant, has_constant, dtype=bool)])
        rows = np.hstack([features.scaled(z), np.ones((len(z), 1))])
        descent = Descent(rows, loss, is_trained[:, np.newaxis], labels, LEARNING_RATE)
        (w,), (steps,) = descent.run(start[np.newaxis], n_steps, patience, is_free)
        weights = w[:-1] * spread / features.spread[:, np.newaxis]
        constant = centre + w[-1] * spread - features.centre @ weights if has_constant else constant
        return self._with(weights, constant), int(steps)

    def _with(self, weights: Array, constant: Array) -> list[Any]:
        """Return copies of the models with other weights."""
        models, first = [], 0
        for model in self.models:
            columns = slice(first, first + _n_outputs(_regressor(model)))
            models.append(_changed(model, weights[:, columns].T, constant[columns]))
            first = columns.stop
        return models


def mean_of(models: Sequence[Any]) -> Any:
    """Return one model with the mean weights of several; they have no transformed features."""
    weights = np.mean([np.atleast_2d(model.coef_) for model in models], axis=0)
    constant = np.mean([np.atleast_1d(model.intercept_) for model in models], axis=0)
    return _changed(models[0], weights, constant)


def _parts(model: Any) -> list[Any]:
    """Return the models that predict in place of one: the best of a search, one per output."""
    if isinstance(model, Pipeline):
        return [_with_regressor(model, part) for part in _parts(_regressor(model))]
    if hasattr(model, "best_estimator_"):
        return _parts(model.best_estimator_)
    if isinstance(model, MultiOutputRegressor):
        return [part for one in model.estimators_ for part in _parts(one)]
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
