r"""Corrected: a model that stays as it is, plus a small correction trained on a learned loss.

The correction c minimises sum_i L_i(b(x_i) + c(x_i)) over a learner's models, given the predictions
b of the base: the learned loss at residuals y - b instead of labels. So any learner can train it.

A base fits its own training instances too well, so residuals are *out of fold*. They are smaller
where a fold was left out whose labels differ from the rest, and a flexible correction would learn
these differences. So it is bounded, it should be small, and with a base that is not fitted yet,
validation instances have a base of their own that has not seen them (nested folds).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from lodl._arrays import take_rows
from lodl._typing import Array, Masks
from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss, is_squared_error, squared_error_loss
from lodl.training._features import check_features, check_masks, inner_folds
from lodl.training._learner import Learner, Predictor, learner_for, load_predictor

__all__ = ["Corrected", "CorrectedPredictor"]

_N_FOLDS = 3  # of the out-of-fold predictions of a base that is not fitted yet
_PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)  # of a linear correction of columns that are encoded


@dataclass(frozen=True, eq=False)
class CorrectedPredictor(Predictor):
    """A base model plus a bounded correction."""

    kind: ClassVar[str] = "corrected"
    base: Predictor
    correction: Predictor
    limit: Array  # the largest correction of each value of a label

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return self.base.n_features

    @property
    def label_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(self.base.label_shape)

    @property
    def n_steps(self) -> int:  # type: ignore[override]
        return self.correction.n_steps

    def predict(self, x: Any) -> Array:
        correction = np.clip(self.correction.predict(x), -self.limit, self.limit)
        return np.asarray(self.base.predict(x) + correction)

    def save(self, folder: str | PathLike[str]) -> None:
        path = self.write(folder, limit=self.limit.tolist())
        self.base.save(path / "base")
        self.correction.save(path / "correction")

    @classmethod
    def load(cls, folder: Path, **options: Any) -> "CorrectedPredictor":
        content = cls.read(folder)
        base, correction = (load_predictor(folder / n, **options) for n in ("base", "correction"))
        limit = np.array(content["limit"], dtype=np.float64)
        if limit.shape != content["label_shape"] or not np.isfinite(limit).all():
            raise ValueError("`limit` must be a number for each value of a label")
        return cls(base, correction, limit)


@dataclass(frozen=True, eq=False)
class Corrected(Learner):
    """Train a bounded correction of a base model, which stays as it is.

    Use it for a model that cannot be trained on a loss, such as one that is fitted already, or
    that is slow to fit again. The baseline is the base model alone.

    Example:
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> domain = lodl.domains.knapsack(sizes=(40, 1, 5))
        >>> train, test = domain.splits.train, domain.splits.test
        >>> forest = RandomForestRegressor(10, random_state=0)
        >>> learner = lodl.training.corrected.Corrected(forest)
        >>> model = lodl.DecisionFocusedRegressor(domain.problem, learner).fit(train.x, train.y)
        >>> model.predict(test.x).shape
        (5, 16)
    """

    takes_frames = True

    #: An estimator as in `learner_for`, which is cloned and fitted on the instances of each mask,
    #: or a fitted model: a `Predictor`, or anything with `predict`.
    base: Any
    correction: Any = None  #: An estimator as in `learner_for`. Defaults to a linear model.
    #: Predictions of a fitted base for the training instances, by models that did not see them.
    #: Defaults to its own, which suit a base that was fitted to other data.
    out_of_fold: Array | None = None
    max_shift: float = 3.0  #: Largest correction, in standard deviations of the base's residuals.
    seed: int = 0  #: Random seed of folds and training.

    def prepare(self, x: Any, y: Array, masks: Masks | None = None) -> "list[Residuals]":
        x, base = check_features(x, len(y)), _fitted(self.base, x, y)
        masks = check_masks(masks, len(y))
        if base is None:
            return [Residuals(self, x, y, mask, self._fit) for mask in masks]
        return [Residuals(self, x, y, mask, lambda *_: base, is_fitted=True) for mask in masks]

    def _fit(self, x: Any, y: Array) -> Predictor:
        learner = learner_for(self.base, seed=self.seed)
        return learner.train_plainly(x, y) or learner.train(x, squared_error_loss(y))[0]

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        masks: Masks | None = None,
        *,
        prepared: "list[Residuals] | None" = None,
        n_steps: int | None = None,
    ) -> list[Predictor]:
        parts = prepared or self.prepare(x, loss.y, masks)
        if is_squared_error(loss):
            return [part.base for part in parts]
        return [part.corrected(loss, n_steps) for part in parts]


@dataclass(eq=False)
class Residuals:
    """The base model of a mask and its residuals, which all losses share, made on first use."""

    learner: Corrected
    x: Any
    y: Array
    mask: Masks
    fit: Callable[[Any, Array], Predictor]  # returns the base fitted to features and labels
    is_fitted: bool = False  # whether the base stays the same

    @cached_property
    def base(self) -> Predictor:
        """The base model, fitted to the instances of the mask."""
        return self.fit(take_rows(self.x, np.flatnonzero(self.mask)), self.y[self.mask])

    @cached_property
    def residuals(self) -> Array:
        """Labels less predictions of models that have not seen them."""
        y_hat, index = self.base.predict(self.x), np.flatnonzero(self.mask)
        if not self.is_fitted:
            for rest, part in inner_folds(len(index), _N_FOLDS, self.learner.seed):
                model = self.fit(take_rows(self.x, index[rest]), self.y[index[rest]])
                y_hat[index[part]] = model.predict(take_rows(self.x, index[part]))
        elif self.learner.out_of_fold is not None:
            y_hat = np.asarray(self.learner.out_of_fold)
            if y_hat.shape != self.y.shape:
                raise InvalidInputError(
                    f"`out_of_fold` must have the shape of the labels, {self.y.shape}, got "
                    f"{y_hat.shape}."
                )
        return np.asarray(self.y - y_hat)

    @cached_property
    def _prepared(self) -> tuple[Learner, Any]:
        given = self.learner.correction
        learner = learner_for(_linear(self.x) if given is None else given, seed=self.learner.seed)
        return learner, learner.prepare(self.x, self.residuals, self.mask[np.newaxis])

    def corrected(self, loss: LearnedLoss, n_steps: int | None) -> CorrectedPredictor:
        """Return the base with a correction trained on a loss."""
        learner, prepared = self._prepared
        of_residuals, mask = replace(loss, y=self.residuals), self.mask[np.newaxis]
        (trained,) = learner.train(self.x, of_residuals, mask, prepared=prepared, n_steps=n_steps)
        limit = self.learner.max_shift * self.residuals[self.mask].std(axis=0)
        return CorrectedPredictor(self.base, trained, limit)


def _fitted(base: Any, x: Any, y: Array) -> Predictor | None:
    """Return a fitted model as a predictor, None if it is to be fitted."""
    if isinstance(base, Predictor):
        return base
    if isinstance(base, Learner) or not hasattr(base, "predict"):
        return None
    from sklearn.exceptions import NotFittedError  # slow to import
    from sklearn.utils.validation import check_is_fitted

    try:
        if hasattr(base, "fit"):
            check_is_fitted(base)
    except NotFittedError:
        return None
    of_sklearn = import_module("lodl.training.sklearn")  # which knows this module
    predictor: Predictor = of_sklearn.SklearnPredictor([base], y.shape[1:], x.shape[-1], 0)
    return predictor


def _linear(x: Any) -> Any:
    """Return a linear model for features: finite numbers, or a frame, or with missing values."""
    if isinstance(x, np.ndarray) and np.isfinite(x).all():
        return None
    from sklearn.compose import make_column_selector, make_column_transformer  # slow to import
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    steps = [SimpleImputer(keep_empty_features=True), StandardScaler(), RidgeCV(_PENALTIES)]
    if not isinstance(x, np.ndarray):
        texts = make_column_selector(dtype_include=["object", "string", "category", "bool"])
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        numbers = ("passthrough", make_column_selector(dtype_include="number"))
        steps.insert(0, make_column_transformer((encoder, texts), numbers))
    return make_pipeline(*steps)
