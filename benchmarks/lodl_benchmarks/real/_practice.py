"""The practitioner's methods: plain models, simple corrections, quantile regression.

Every choice is made by decisions on held-out training instances: five folds, consecutive blocks if
the instances are in time order.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import KFold

from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.evaluation import regret
from lodl_benchmarks.real._models import Fitted, PinballRegressor
from lodl_benchmarks.real._split import Split

N_FOLDS = 5
_LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.985, 0.99, 0.995)
_SHARES = (0.25, 0.5, 0.75, 1.0)  # of the way to the mean label
_FACTORS = (0.8, 0.9, 1.1, 1.25, 1.5)
_QUANTILES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # besides the level that costs give
_QUANTILE_RANGE = 0.5  # largest distance of a level from the one that the costs give
_PENALTIES = (1e-4, 1e-3, 1e-2)

Index: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Predictions of a method for the test instances, and what they took."""

    y_hat: Array  # the predictions
    n_calls: int = 0  # solver calls, those that select included
    note: str = ""  # what was selected
    promised: tuple[float, float] | None = None  # interval of the gain over squared error


def folds(split: Split) -> list[tuple[Index, Index]]:
    """Return training and held-out positions of five folds."""
    by = KFold(N_FOLDS, shuffle=not split.is_ordered, random_state=None if split.is_ordered else 0)
    return list(by.split(np.arange(len(split.y_train))))


def plain(split: Split, estimator: Any) -> Outcome:
    """The estimator on all training instances."""
    return Outcome(Fitted(estimator, split.x_train, split.y_train).predict(split.x_test))


def mean_label(split: Split, estimator: Any) -> Outcome:  # noqa: ARG001
    """The mean of the training labels."""
    return Outcome(np.broadcast_to(split.y_train.mean(axis=0), split.y_test.shape).copy())


def shifted(split: Split, estimator: Any) -> Outcome:
    """The plain model, shifted by a quantile of its held-out residuals in each coordinate."""
    return _corrected(split, estimator, [_shift(level) for level in _LEVELS])


def corrected(split: Split, estimator: Any) -> Outcome:
    """The plain model with the best of several simple corrections, or with none."""
    corrections = [_Correction("none", lambda y_hat, *_: y_hat)]
    corrections += [_shift(level) for level in _LEVELS]
    corrections += [_towards_mean(share) for share in _SHARES]
    corrections += [_scaled(factor) for factor in _FACTORS]
    return _corrected(split, estimator, corrections)


@dataclass(frozen=True, eq=False)
class _Correction:
    """A change of predictions by what held-out predictions and their labels show."""

    name: str
    apply: Callable[[Array, Array, Array], Array]


def _shift(level: float) -> _Correction:
    return _Correction(
        f"shifted, {level:g}",
        lambda y_hat, held_out, y: y_hat + np.quantile(y - held_out, level, axis=0),
    )


def _towards_mean(share: float) -> _Correction:
    return _Correction(
        f"{share:.0%} of the way to the mean",
        lambda y_hat, _, y: y_hat + share * (y.mean(axis=0) - y_hat),
    )


def _scaled(factor: float) -> _Correction:
    return _Correction(f"times {factor:g}", lambda y_hat, *_: factor * y_hat)


def _corrected(split: Split, estimator: Any, corrections: Sequence[_Correction]) -> Outcome:
    """Apply the correction whose decisions are best on folds that did not set it."""
    parts = folds(split)
    y, held_out = split.y_train, _held_out(split, parts, [estimator])[0]
    tried = np.empty((len(corrections), *y.shape))
    for others, part in parts:
        for number, correction in enumerate(corrections):
            tried[number, part] = correction.apply(held_out[part], held_out[others], y[others])
    best = corrections[int(_train_regrets(split, tried).argmin())]
    y_hat = Fitted(estimator, split.x_train, y).predict(split.x_test)
    return Outcome(best.apply(y_hat, held_out, y), (len(tried) + 1) * len(y), best.name)


def quantile(split: Split, estimator: Any) -> Outcome:
    """Quantile regression: linear in the features of a ridge, or LightGBM's, level by folds."""
    if split.levels is None:
        raise InvalidInputError("Quantiles need an objective with costs of shortage and excess.")
    step = 2 if type(estimator).__name__ == "LGBMRegressor" else 1  # trees are slow
    near = [q for q in _QUANTILES[::step] if abs(q - split.levels.mean()) < _QUANTILE_RANGE]
    levels = [split.levels, *(np.full(split.y_train.shape[1], q) for q in near)]
    models = {
        f"level {', '.join(f'{v:.3g}' for v in np.unique(level.round(3)))}{suffix}": model
        for level in levels
        for suffix, model in _quantile_models(estimator, level)
    }
    tried = _held_out(split, folds(split), models.values())
    best = list(models)[int(_train_regrets(split, tried).argmin())]
    y_hat = Fitted(models[best], split.x_train, split.y_train).predict(split.x_test)
    return Outcome(y_hat, (len(tried) + 1) * len(split.y_train), best)


def _quantile_models(estimator: Any, levels: Array) -> list[tuple[str, Any]]:
    if type(estimator).__name__ == "LGBMRegressor":
        return [("", _QuantileTrees(estimator, levels))]
    pipeline = clone(estimator)
    models = []
    for alpha in _PENALTIES:
        last = PinballRegressor(tuple(levels), alpha)
        models.append((f", penalty {alpha:g}", clone(pipeline).set_params(ridgecv=last)))
    return models


class _QuantileTrees:
    """LightGBM with the quantile loss, a model per output at its own level."""

    def __init__(self, estimator: Any, levels: Array) -> None:
        self.estimator, self.levels = estimator, levels

    def __sklearn_clone__(self) -> "_QuantileTrees":
        return _QuantileTrees(self.estimator, self.levels)

    def fit(self, x: Any, y: Array) -> "_QuantileTrees":
        pairs = zip(self.levels, y.T, strict=True)
        self._models = [
            clone(self.estimator)
            .set_params(objective="quantile", alpha=float(level))
            .fit(x, column)
            for level, column in pairs
        ]
        return self

    def predict(self, x: Any) -> Array:
        return np.column_stack([model.predict(x) for model in self._models])


def _held_out(split: Split, parts: Sequence[Any], estimators: Iterable[Any]) -> Array:
    """Return the predictions of each estimator for folds that did not train it."""
    predictions = []
    for estimator in estimators:
        y_hat = np.empty(split.y_train.shape)
        for others, part in parts:
            model = Fitted(estimator, _take(split.x_train, others), split.y_train[others])
            y_hat[part] = model.predict(_take(split.x_train, part))
        predictions.append(y_hat)
    return np.stack(predictions)


def _train_regrets(split: Split, y_hats: Array) -> Array:
    """Return the mean regret of several predictions for the training instances."""
    regrets = regret(split.problem, y_hats, split.y_train, context=split.context_train)
    means: Array = np.asarray(regrets).mean(axis=-1)
    return means


def _take(x: Any, rows: Index) -> Any:
    return x.iloc[rows] if isinstance(x, pd.DataFrame) else x[rows]
