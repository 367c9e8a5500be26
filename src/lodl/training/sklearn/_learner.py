"""SklearnLearner: trains linear regressors on the loss itself and refits others to new targets."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from lodl._arrays import require, take_rows
from lodl._typing import Array, Index, Masks
from lodl.errors import InvalidInputError, ModelFolderError
from lodl.losses import LearnedLoss, is_squared_error
from lodl.training._features import as_rows, check_features, check_masks, count_items, inner_folds
from lodl.training._learner import EarlyStopping, Learner, Predictor, file_in, unusable
from lodl.training._pulled import is_pulled
from lodl.training.linear import N_STEPS
from lodl.training.sklearn._linear_form import LinearForm, descend, mean_model, pull
from lodl.training.sklearn._targets import shifted_targets, weighted_targets

_FILE = "model.skops"
_N_ROUNDS = 2  # if nothing stops the model: between 1 and 4, which did well
_MAX_ROUNDS = 4
_N_FOLDS = 3  # for out-of-fold predictions


@dataclass(frozen=True, eq=False)
class SklearnPredictor(Predictor):
    """Fitted regressors that predict labels of any shape."""

    kind: ClassVar[str] = "sklearn"
    models: list[Any]  # one for all values of a label, or one for each
    label_shape: tuple[int, ...]
    n_features: int
    n_steps: int  # on the loss, or rounds of changed targets
    is_linear: bool = False  # and trained on the loss itself

    @classmethod
    def mean(cls, predictors: "Sequence[SklearnPredictor]") -> "list[SklearnPredictor]":
        """Return one model that predicts the mean, if all are linear in the features."""
        first = predictors[0]
        if any(not p.is_linear or isinstance(p.models[0], Pipeline) for p in predictors):
            return list(predictors)
        by_output = zip(*(predictor.models for predictor in predictors), strict=True)
        n_steps = round(float(np.mean([predictor.n_steps for predictor in predictors])))
        return [replace(first, models=list(map(mean_model, by_output)), n_steps=n_steps)]

    def predict(self, x: Any) -> Array:
        x = check_features(x, n_features=self.n_features)
        outputs = np.column_stack([model.predict(as_rows(x)) for model in self.models])
        return outputs.astype(np.float64, copy=False).reshape(len(x), *self.label_shape)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the regressor to a folder in the format of skops, which is not a pickle."""
        io = require("skops.io", extra="sklearn")
        path = self.write(folder) / _FILE
        io.dump(self.models, path)
        nameless = [kind for kind in io.get_untrusted_types(file=path) if "<" in kind]
        if nameless:
            path.unlink()
            raise ModelFolderError(
                f"The estimator cannot be saved, because it holds {', '.join(nameless)}, which "
                "no module names. Use functions and classes of a module."
            )

    @classmethod
    def load(cls, folder: Path, *, trusted: Sequence[str] = (), **_: Any) -> "SklearnPredictor":
        content = cls.read(folder)
        io = require("skops.io", extra="sklearn")
        path = file_in(folder, _FILE)
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > path.stat().st_size:  # skops does not compress, and zeros pack well
            raise ValueError(f"it has {size} bytes when unpacked")
        unknown = sorted(set(io.get_untrusted_types(file=path)) - set(trusted))
        if unknown:
            raise unusable(
                folder,
                f"it holds {', '.join(unknown)}, which a forged file could misuse to crash Python "
                f"or to run code. If you trust its origin, load it with `trusted={unknown}`",
            )
        models = io.load(path, trusted=list(trusted))
        return cls(models, content["label_shape"], content["n_features"], content["n_steps"])


@dataclass(frozen=True, eq=False)
class SklearnLearner(Learner):
    """Train any scikit-learn regressor or pipeline on a learned loss.

    The baseline is a plain `fit`. Other losses depend on the fitted model:

    - A model that is linear in its (transformed) features (`Ridge`, `Lasso`, `HuberRegressor`,
      alone, in a pipeline, or as the best model of a search) is trained further on the loss itself.
      Its `coef_` and `intercept_` change; zeros stay 0, so a lasso keeps its features.
    - Any other model is fitted again to targets that follow from its predictions: shifted labels,
      or weighted targets if the loss was fitted to regrets and the estimator takes
      `sample_weight`. There are at most 4 rounds of 4 fits.

    Example:
        >>> from sklearn.linear_model import Ridge
        >>> from lodl.training.sklearn import SklearnLearner
        >>> x, y = np.arange(8.0).reshape(4, 2), np.arange(12.0).reshape(4, 3)
        >>> (model,) = SklearnLearner(Ridge()).train(x, lodl.learn_loss(lodl.domains.TopK(1), y))
        >>> model.predict(x).shape
        (4, 3)
    """

    takes_frames = True

    #: The regressor or pipeline. It is cloned, never changed. With weights, or if it takes a single
    #: output, it is fitted once per value of the label.
    estimator: Any
    seed: int = 0  #: Random seed of the folds. The estimator has its own `random_state`.

    def __post_init__(self) -> None:
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise InvalidInputError(
                f"`estimator` must be a regressor with a `fit` method, got {self.estimator!r}."
            )

    def prepare(self, x: Any, y: Array, masks: Masks | None = None) -> "list[_Fold]":
        x = check_features(x, len(y))
        return [_Fold(self, x, y, mask) for mask in check_masks(masks, len(y))]

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        masks: Masks | None = None,
        *,
        prepared: "list[_Fold] | None" = None,
        n_steps: int | None = None,
    ) -> list[SklearnPredictor]:
        folds = prepared or self.prepare(x, loss.y, masks)
        if is_squared_error(loss):
            return [fold.baseline for fold in folds]
        x, masks = check_features(x, loss.n_instances), check_masks(masks, loss.n_instances)
        stops = n_steps is None and not masks.all()
        forms = [form for fold in folds if (form := fold.form) is not None]
        if len(forms) < len(folds):
            return [fold.refitted(x, loss, n_steps, stops=stops) for fold in folds]
        if is_pulled(loss.family) and n_steps != 0:
            trained = pull(forms, x, loss, masks)
        else:
            steps = N_STEPS if n_steps is None else n_steps
            trained = descend(forms, x, loss, masks, steps, stops=stops)
        shape, n_features = loss.label_shape, x.shape[-1]
        counted = [(models, taken if n_steps is None else n_steps) for models, taken in trained]
        return [
            SklearnPredictor(m, shape, n_features, steps, is_linear=True) for m, steps in counted
        ]


class _Fold:
    """The instances of one mask, and fits on them that all losses share, made on first use."""

    def __init__(self, learner: SklearnLearner, x: Any, y: Array, mask: Masks) -> None:
        self.estimator, self.seed = learner.estimator, learner.seed
        self.index = np.flatnonzero(mask)
        self.x, self.y = take_rows(x, self.index), y[self.index]
        self.first: Array | None = None  # out-of-fold predictions of the baseline

    @cached_property
    def baseline(self) -> SklearnPredictor:
        """The estimator fitted to the labels."""
        return _fit(self.estimator, self.x, self.y)

    @cached_property
    def form(self) -> LinearForm | None:
        """The baseline as a linear model, if it is linear."""
        return LinearForm.of(self.baseline.models, self.x)

    def refitted(
        self, x: Any, loss: LearnedLoss, n_steps: int | None, *, stops: bool
    ) -> SklearnPredictor:
        """Refit to changed targets, as long as the loss of the other instances falls."""
        uses_weights = not loss.family.uses_slopes and _weight_argument(self.estimator) is not None
        targets_of = weighted_targets if uses_weights else shifted_targets
        rounds = targets_of(loss, self.index, self.out_of_fold)
        if not stops:
            last = _N_ROUNDS if n_steps is None else n_steps
            return self._refit(*next(islice(rounds, last, None)), last)
        rest = np.setdiff1d(np.arange(loss.n_instances), self.index)
        x_rest, stopping = take_rows(x, rest), EarlyStopping(0, 1)
        best, _ = self.baseline, next(rounds)
        for k in range(_MAX_ROUNDS + 1):
            model = best if k == 0 else self._refit(*next(rounds), k)
            score = loss.value(model.predict(x_rest), rest).mean()
            if not stopping.update(np.array([score]), k).all():
                break
            best = model
        return best

    def out_of_fold(self, targets: Array, weights: Array | None) -> Array:
        """Return predictions by models that were fitted without the instance."""
        is_first = weights is None and np.array_equal(targets, self.y)
        if is_first and self.first is not None:
            return self.first
        p = np.empty(targets.shape)
        for rest, part in inner_folds(len(p), _N_FOLDS, self.seed):
            given = None if weights is None else weights[rest]
            model = self._refit(targets[rest], given, 0, rest)
            p[part] = model.predict(take_rows(self.x, part))
        self.first = p if is_first else self.first
        return p

    def _refit(
        self, targets: Array, weights: Array | None, n_steps: int, index: Index | None = None
    ) -> SklearnPredictor:
        """Fit to changed targets, clipped to the range of the labels if they are refused: logs."""
        x, y = (self.x, self.y) if index is None else (take_rows(self.x, index), self.y[index])
        try:
            with np.errstate(invalid="ignore", divide="ignore"):  # logarithms of numbers below 0
                return _fit(self.estimator, x, targets, weights, n_steps)
        except ValueError:
            within = np.clip(targets, y.min(axis=0), y.max(axis=0))
            if np.array_equal(within, targets):
                raise
            return _fit(self.estimator, x, within, weights, n_steps)


def _fit(
    estimator: Any, x: Any, targets: Array, weights: Array | None = None, n_steps: int = 0
) -> SklearnPredictor:
    """Fit an estimator to targets of any shape."""
    n_rows = len(targets) * (count_items(x, targets) or 1)
    rows, outputs = as_rows(x), targets.reshape(n_rows, -1)
    takes = get_tags(estimator).target_tags
    has_many = outputs.shape[1] > 1 or not takes.single_output
    if weights is None and takes.multi_output and has_many:
        models = [clone(estimator).fit(rows, outputs)]
    else:
        given: list[dict[str, Array]] = [{} for _ in outputs.T]
        name = _weight_argument(estimator)
        if weights is not None and name is not None:
            given = [{name: column} for column in weights.reshape(n_rows, -1).T]
        columns = outputs.T if takes.single_output else outputs.T[:, :, np.newaxis]
        models = [
            clone(estimator).fit(rows, column, **arguments)
            for column, arguments in zip(columns, given, strict=True)
        ]
    return SklearnPredictor(models, tuple(targets.shape[1:]), x.shape[-1], n_steps)


def _weight_argument(estimator: Any) -> str | None:
    """Return the argument of `fit` that takes sample weights, or None if there is none."""
    if not isinstance(estimator, Pipeline):
        return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None
    last, regressor = estimator.steps[-1]
    is_plain = not get_config()["enable_metadata_routing"]
    takes_it = is_plain and has_fit_parameter(regressor, "sample_weight")
    return f"{last}__sample_weight" if takes_it else None
