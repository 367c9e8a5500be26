r"""Corrected: a model that stays as it is, plus a small correction trained on a learned loss.

The correction c minimises sum_i L_i(b(x_i) + c(x_i)) over a learner's models, given the predictions
b of the base: the learned loss at residuals y - b instead of labels. So any learner can train it.

A base fits its own training instances too well, so residuals are *out of fold*. They are smaller
where a fold was left out whose labels differ from the rest, and a flexible correction would learn
these differences. So it is bounded, it should be small, and with a base that is not fitted yet,
each validation fold gets a base that has not seen it (nested folds).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from lodl._arrays import take_rows
from lodl._typing import Array, FilePath, Index, Masks
from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss, is_squared_error, squared_error_loss
from lodl.training._features import as_pandas, check_features, check_masks, inner_folds
from lodl.training._learner import Learner, Predictor, learner_for, load_predictor
from lodl.training.linear import LinearLearner

__all__ = ["Corrected", "CorrectedPredictor"]

_N_FOLDS = 3  # of the out-of-fold predictions of a base that is not fitted yet
_MIN_FOLDS, _MAX_FOLDS = 4, 7  # for which pairs of folds take fewer models than inner folds
_PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)  # of a linear correction of columns that are encoded


@dataclass(frozen=True, eq=False)
class CorrectedPredictor(Predictor):
    """A base model plus a bounded correction."""

    kind: ClassVar[str] = "corrected"
    base: Predictor
    correction: Predictor
    limit: Array  # the largest correction of each value of a label
    #: Rows outside the mask, and the base's predictions of them, which all losses need.
    known: tuple[Any, Array] | None = None

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
        if self.known is not None and np.array_equal(self.known[0], x):
            return np.asarray(self.known[1] + self.shift(x))
        return np.asarray(self.base.predict(x) + self.shift(x))

    def shift(self, x: Any) -> Array:
        """Return the bounded correction."""
        return np.clip(self.correction.predict(as_pandas(x)), -self.limit, self.limit)

    def save(self, folder: FilePath) -> None:
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


class PartsLearner(Learner):
    """A learner whose `prepare` returns a part for each mask, which trains all of its models."""

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        masks: Masks | None = None,
        *,
        prepared: Any = None,
        n_steps: int | None = None,
    ) -> list[Predictor]:
        parts = prepared or self.prepare(x, loss.y, masks)
        return [part.trained(loss, n_steps) for part in parts]


@dataclass(frozen=True, eq=False)
class Corrected(PartsLearner):
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
        base = _fitted(self.base, x, y)
        learner = LinearLearner() if base is not None else learner_for(self.base, seed=self.seed)
        nested = Nested(learner, x, y, masks, self.seed)
        parts = [Residuals(self, nested, k) for k in range(len(nested.masks))]
        if base is not None:
            given = self.out_of_fold
            y_hat = base.predict(nested.x) if given is None else np.asarray(given)
            if y_hat.shape != y.shape:
                wanted = f"the shape of the labels, {y.shape}"
                raise InvalidInputError(f"`out_of_fold` must have {wanted}, got {y_hat.shape}.")
            for part in parts:
                part.base, part.residuals = base, y - y_hat
        return parts


class Nested:
    """Predictions of each mask's instances by models that have seen neither them nor the rest.

    If masks are a partition, each model leaves out two of its parts and serves two masks, which
    takes fewer and better models than inner folds. Left-out labels choose the number of steps only.
    """

    def __init__(self, learner: Any, x: Any, y: Array, masks: Masks | None, seed: int) -> None:
        self.learner, self.y, self.seed = learner, y, seed
        self.x, self.masks = check_features(x, len(y)), check_masks(masks, len(y))

    @cached_property
    def models(self) -> list[tuple[Predictor, list[tuple[int, Index]]]]:
        """The models, and the parts that they predict for the masks at some positions."""
        found = list[tuple[Predictor, list[tuple[int, Index]]]]()
        for index, masks, parts in self._split():
            x, loss = take_rows(self.x, index), squared_error_loss(self.y[index])
            found += zip(self.learner.train(x, loss, masks), parts, strict=True)
        return found

    @cached_property
    def y_hats(self) -> list[Array]:
        """The predictions for each mask, NaN outside of it."""
        y_hats = [np.full(self.y.shape, np.nan) for _ in self.masks]
        for model, parts in self.models:
            for k, part in parts:
                y_hats[k][part] = model.predict(take_rows(self.x, part))
        return y_hats

    def _split(self) -> Iterator[tuple[Index, Masks, list[list[tuple[int, Index]]]]]:
        """Yield instances, which of them train each model, and the parts that it predicts."""
        masks, rest = self.masks, [np.flatnonzero(~mask) for mask in self.masks]
        is_partition = bool(((~masks).sum(axis=0) == 1).all())
        if is_partition and _MIN_FOLDS <= len(masks) <= _MAX_FOLDS:
            pairs = list(combinations(range(len(masks)), 2))
            trained = np.array([masks[j] & masks[k] for j, k in pairs])
            parts = [[(k, rest[j]), (j, rest[k])] for j, k in pairs]
            yield np.arange(len(self.y)), trained, parts
            return
        for k, mask in enumerate(masks):
            index = np.flatnonzero(mask)
            inner = [part for _, part in inner_folds(len(index), _N_FOLDS, self.seed)]
            trained = np.array([~np.isin(np.arange(len(index)), part) for part in inner])
            yield index, trained, [[(k, index[part])] for part in inner]


class Residuals:
    """The base model of a mask and its residuals, which all losses share, made on first use."""

    def __init__(self, learner: Corrected, nested: Nested, k: int) -> None:
        self.learner, self.nested, self.k = learner, nested, k
        self.x, self.y, self.mask = nested.x, nested.y, nested.masks[k]

    @cached_property
    def base(self) -> Predictor:
        """The base model, fitted to the instances of the mask."""
        x, y = take_rows(self.x, np.flatnonzero(self.mask)), self.y[self.mask]
        learner = self.nested.learner
        plain: Predictor | None = learner.train_plainly(x, y)
        return plain or learner.train(x, squared_error_loss(y))[0]

    @cached_property
    def residuals(self) -> Array:
        """Labels less predictions of models that have not seen them."""
        y_hat = self.unseen()
        if self.known is not None:
            y_hat[~self.mask] = self.known[1]
        return np.asarray(self.y - y_hat)

    @cached_property
    def known(self) -> tuple[Any, Array] | None:
        """The rows outside the mask, if there are some, and the base's predictions of them."""
        rows = take_rows(self.x, np.flatnonzero(~self.mask))
        return None if self.mask.all() else (rows, self.base.predict(rows))

    def unseen(self) -> Array:
        """Return predictions of the mask's instances, in an array of all."""
        return self.nested.y_hats[self.k].copy()

    @cached_property
    def _prepared(self) -> tuple[Learner, Any]:
        given = self.learner.correction
        learner = learner_for(_linear(self.x) if given is None else given, seed=self.learner.seed)
        return learner, learner.prepare(as_pandas(self.x), self.residuals, self.mask[np.newaxis])

    def trained(self, loss: LearnedLoss, n_steps: int | None) -> Predictor:
        """Return the model of a loss: for squared error the base, else the corrected base."""
        return self.base if is_squared_error(loss) else self.corrected(loss, n_steps)

    def corrected(self, loss: LearnedLoss, n_steps: int | None) -> CorrectedPredictor:
        """Return the base with a correction trained on a loss."""
        learner, prepared = self._prepared
        of_residuals, mask = replace(loss, y=self.residuals), self.mask[np.newaxis]
        x = as_pandas(self.x)
        (trained,) = learner.train(x, of_residuals, mask, prepared=prepared, n_steps=n_steps)
        limit = self.learner.max_shift * self.residuals[self.mask].std(axis=0)
        return CorrectedPredictor(self.base, trained, limit, self.known)


def _fitted(base: Any, x: Any, y: Array) -> Predictor | None:
    """Return a fitted model as a predictor, or None if it has yet to be fitted."""
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
    of_sklearn = import_module("lodl.training.sklearn")  # avoids a cycle of imports
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
