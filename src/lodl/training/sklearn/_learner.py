"""SklearnLearner: trains linear regressors on the loss itself, and corrections of others."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from lodl._arrays import require, take_rows
from lodl._typing import Array, FilePath, Masks
from lodl.errors import InvalidInputError, ModelFolderError
from lodl.losses import LearnedLoss, is_squared_error
from lodl.training._features import as_rows, check_features, count_items
from lodl.training._learner import Learner, Predictor, file_in, unusable
from lodl.training.corrected import Corrected, Nested, Residuals
from lodl.training.linear import N_STEPS
from lodl.training.sklearn._linear_form import LinearForm, descend, mean_model, pull

_FILE = "model.skops"
_MIN_TREES = 50  # for which a row that every tree has seen is as unlikely as 1e-10


@dataclass(frozen=True, eq=False)
class SklearnPredictor(Predictor):
    """Fitted regressors that predict labels of any shape."""

    kind: ClassVar[str] = "sklearn"
    models: list[Any]  # one for all values of a label, or one for each
    label_shape: tuple[int, ...]
    n_features: int
    n_steps: int  # on the loss
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

    def save(self, folder: FilePath) -> None:
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
    - Any other model stays as it is, and a linear correction is trained on the loss: `Corrected`.

    Example:
        >>> from sklearn.linear_model import Ridge
        >>> from lodl.training.sklearn import SklearnLearner
        >>> x, y = np.arange(8.0).reshape(4, 2), np.arange(12.0).reshape(4, 3)
        >>> (model,) = SklearnLearner(Ridge()).train(x, lodl.learn_loss(lodl.domains.TopK(1), y))
        >>> model.predict(x).shape
        (4, 3)
    """

    takes_frames = True

    #: The regressor or pipeline. It is cloned, never changed. If it takes a single output, it is
    #: fitted once per value of the label.
    estimator: Any
    seed: int = 0  #: Random seed of the folds. The estimator has its own `random_state`.

    def __post_init__(self) -> None:
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            wanted = "a regressor with a `fit` method"
            raise InvalidInputError(f"`estimator` must be {wanted}, got {self.estimator!r}.")

    def prepare(self, x: Any, y: Array, masks: Masks | None = None) -> "list[_Fold]":
        nested = Nested(self, x, y, masks, self.seed)
        return [_Fold(Corrected(self, seed=self.seed), nested, k) for k in range(len(nested.masks))]

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        masks: Masks | None = None,
        *,
        prepared: "list[_Fold] | None" = None,
        n_steps: int | None = None,
    ) -> list[Any]:  # of `SklearnPredictor`, or of `CorrectedPredictor`
        folds = prepared or self.prepare(x, loss.y, masks)
        if is_squared_error(loss):
            return [fold.base for fold in folds]
        x, masks = folds[0].nested.x, folds[0].nested.masks
        stops = n_steps is None and not masks.all()
        forms = [form for fold in folds if (form := fold.form) is not None]
        if len(forms) < len(folds):
            return [fold.corrected(loss, n_steps) for fold in folds]
        if loss.family.can_be_rounded and n_steps != 0:
            trained = pull(forms, x, loss, masks)
        else:
            steps = N_STEPS if n_steps is None else n_steps
            trained = descend(forms, x, loss, masks, steps, stops=stops)
        shape, n_features = loss.label_shape, x.shape[-1]
        counted = [(models, taken if n_steps is None else n_steps) for models, taken in trained]
        return [SklearnPredictor(m, shape, n_features, n, is_linear=True) for m, n in counted]


class _Fold(Residuals):
    """The instances of one mask, and the estimator fitted on them."""

    @cached_property
    def base(self) -> SklearnPredictor:
        """The estimator. A forest also predicts out of bag, unless it is the plain model."""
        estimator = self.nested.learner.estimator
        estimator = estimator if self.mask.all() else _out_of_bag(estimator)
        return _fit(estimator, take_rows(self.x, np.flatnonzero(self.mask)), self.y[self.mask])

    def unseen(self) -> Array:
        if not all(hasattr(model, "oob_prediction_") for model in self.base.models):
            return super().unseen()
        y_hat, known = np.empty(self.y.shape), [model.oob_prediction_ for model in self.base.models]
        y_hat[self.mask] = np.column_stack(known).reshape(-1, *self.y.shape[1:])
        return y_hat

    @cached_property
    def form(self) -> LinearForm | None:
        """The estimator as a linear model, if it is linear."""
        return LinearForm.of(self.base.models, take_rows(self.x, np.flatnonzero(self.mask)))


def _out_of_bag(estimator: Any) -> Any:
    """Return an estimator that also predicts its training rows out of bag, if it can."""
    given = estimator.get_params() if hasattr(estimator, "get_params") else {}
    is_bagged = given.get("bootstrap") is True and given.get("oob_score") is False
    if not is_bagged or given.get("warm_start") or given["n_estimators"] < _MIN_TREES:
        return estimator
    return clone(estimator).set_params(oob_score=True)


def _fit(estimator: Any, x: Any, y: Array) -> SklearnPredictor:
    """Fit an estimator to labels of any shape, once per value if it takes a single one."""
    n_rows = len(y) * (count_items(x, y) or 1)
    rows, outputs = as_rows(x), y.reshape(n_rows, -1)
    takes = get_tags(estimator).target_tags
    if takes.multi_output and (outputs.shape[1] > 1 or not takes.single_output):
        columns = [outputs]
    else:
        columns = list(outputs.T if takes.single_output else outputs.T[:, :, np.newaxis])
    models = [clone(estimator).fit(rows, column) for column in columns]
    return SklearnPredictor(models, tuple(y.shape[1:]), x.shape[-1], 0)
