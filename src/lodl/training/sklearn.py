"""scikit-learn: any regressor or pipeline, trained on a learned loss.

learner = SklearnLearner(make_pipeline(StandardScaler(), Ridge()))
(model,) = learner.train(x, loss)
"""

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from lodl._arrays import check_count, join_rows, require, take_rows
from lodl._typing import Array
from lodl.errors import InvalidInputError, ModelFolderError
from lodl.losses import LearnedLoss, is_squared_error
from lodl.training._features import as_rows, check_features, check_masks, count_items, count_rows
from lodl.training._inner_folds import inner_folds
from lodl.training._label_shift import shifted_targets
from lodl.training._learner import Learner, Masks, Predictor, file_in, shape_in, unusable
from lodl.training._linear_descent import N_STEPS, PATIENCE
from lodl.training._remembered import Remembered
from lodl.training._reweighting import reweighted_targets

require("sklearn", extra="sklearn")

from sklearn import get_config  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.pipeline import Pipeline  # noqa: E402
from sklearn.utils import get_tags  # noqa: E402
from sklearn.utils.validation import has_fit_parameter  # noqa: E402

from lodl.training._linear_form import LinearForm, mean_of  # noqa: E402

__all__ = ["SklearnLearner", "SklearnPredictor"]

_FILE = "model.skops"
_N_ROUNDS = 2  # without validation instances: between the 1 and the 4 that did well


@dataclass(frozen=True, eq=False)
class SklearnLearner(Learner):
    """Train any scikit-learn regressor or pipeline on a learned loss.

    2-stage is a plain `fit`. What follows depends on what was fitted:

    - A model that is linear in its (transformed) features goes on from there on the loss itself:
      `Ridge`, `Lasso`, `HuberRegressor` and their like, alone, in a pipeline, or as the best one of
      a search. Its `coef_` and `intercept_` change; what is 0 stays 0, so a lasso keeps its
      features. Its regularisation shapes the start; from there on, early stopping takes its place.
    - Any other model only minimises squared error, so its targets are changed, and it is fitted
      again, in rounds. For a loss made of decisions, labels are shifted
      (`lodl.training._label_shift`). A loss fitted to regrets is nearly quadratic: where the
      estimator takes `sample_weight`, targets and weights are those of its quadratic model
      (`lodl.training._reweighting`). A round takes `n_folds + 1` fits of the estimator; 2-stage and
      the folds of the first round are shared by all losses of the same instances.

    Attributes:
        estimator: The regressor or pipeline; it is cloned, never changed. With weights, or if it
            takes a single output, it is fitted once per value of the label.
        max_rounds: The most rounds. With validation instances rounds end when their loss does not
            fall any more. A linear model has none.
        n_folds: Folds for the out-of-fold predictions.
        seed: Random seed for the folds; that of the estimator is its own `random_state`.

    Example:
        >>> from sklearn.linear_model import Ridge
        >>> from lodl.training.sklearn import SklearnLearner
        >>> domain = lodl.domains.knapsack(sizes=(30, 1, 1))
        >>> x, y = domain.splits.train.x, domain.splits.train.y
        >>> loss = lodl.learn_loss(domain.problem, y)
        >>> (model,) = SklearnLearner(Ridge()).train(x, loss)
        >>> model.predict(x).shape
        (30, 16)
    """

    estimator: Any
    max_rounds: int = 4
    n_folds: int = 3
    seed: int = 0
    _first: Remembered[Array] = field(default_factory=Remembered, init=False, repr=False)
    _two_stage: "Remembered[SklearnPredictor]" = field(
        default_factory=Remembered, init=False, repr=False
    )
    takes_frames = True

    def __post_init__(self) -> None:
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise InvalidInputError(
                f"`estimator` must be a regressor with a `fit` method, got {self.estimator!r}."
            )
        check_count("max_rounds", self.max_rounds, minimum=0)
        check_count("n_folds", self.n_folds, minimum=2)

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        masks: Masks | None = None,
        *,
        prepared: Any = None,
        n_steps: int | None = None,
    ) -> "list[SklearnPredictor]":
        x = check_features(x, loss.n_instances)
        if masks is None:
            return [self._train_one(x, loss, n_steps=n_steps)]
        masks = check_masks(masks, loss.n_instances)
        models = []
        for mask in masks:
            rest, part = np.flatnonzero(mask), np.flatnonzero(~mask)
            stop: dict[str, Any] = {"n_steps": n_steps}
            if n_steps is None and len(part):
                stop = {"x_validation": take_rows(x, part), "loss_validation": loss.subset(part)}
            models.append(self._train_one(take_rows(x, rest), loss.subset(rest), **stop))
        return models

    def _train_one(
        self,
        x: Any,
        loss: LearnedLoss,
        *,
        x_validation: Any = None,
        loss_validation: LearnedLoss | None = None,
        n_steps: int | None = None,
    ) -> "SklearnPredictor":
        x = check_features(x, loss.n_instances)
        if is_squared_error(loss):
            return self._two_stage.put(x, [loss.y], self._fit(x, loss.y, None, 0))
        start = self._two_stage.get(x, [loss.y], lambda: self._fit(x, loss.y, None, 0))
        form = LinearForm.of(start.models, x)
        if form is not None:
            return self._descend(form, x, loss, x_validation, loss_validation, n_steps)
        rounds = self._rounds(x, loss)
        if x_validation is None or loss_validation is None:
            last = min(_N_ROUNDS, self.max_rounds) if n_steps is None else n_steps
            return self._refit(x, loss.y, *next(islice(rounds, last, None)), last)
        best, best_score, _ = start, np.inf, next(rounds)
        for k in range(self.max_rounds + 1):
            model = best if k == 0 else self._refit(x, loss.y, *next(rounds), k)
            score = float(loss_validation.value(model.predict(x_validation)).mean())
            if score >= best_score:
                break
            best, best_score = model, score
        return best

    def _descend(
        self,
        form: LinearForm,
        x: Any,
        loss: LearnedLoss,
        x_validation: Any,
        loss_validation: LearnedLoss | None,
        n_steps: int | None,
    ) -> "SklearnPredictor":
        """Return a linear model that goes on from 2-stage on the loss itself."""
        n, patience = count_rows(x), None
        if x_validation is not None and loss_validation is not None:
            x, loss = join_rows(x, x_validation), LearnedLoss.concatenate([loss, loss_validation])
            n_steps, patience = N_STEPS, PATIENCE
        is_trained = np.arange(loss.n_instances) < n
        n_steps = N_STEPS if n_steps is None else n_steps
        models, steps = form.trained(x, loss, is_trained, n_steps, patience)
        return SklearnPredictor(models, loss.label_shape, x.shape[-1], steps, is_linear=True)

    def _rounds(self, x: Any, loss: LearnedLoss) -> Iterator[tuple[Array, Array | None]]:
        def out_of_fold(targets: Array, weights: Array | None) -> Array:
            if targets is not loss.y:
                return self._out_of_fold(x, loss.y, targets, weights)
            return self._first.get(
                x, [targets], lambda: self._out_of_fold(x, loss.y, targets, None)
            )

        if loss.family.uses_slopes or _weight_argument(self.estimator) is None:
            return shifted_targets(loss, out_of_fold)
        return reweighted_targets(loss, out_of_fold)

    def _out_of_fold(self, x: Any, y: Array, targets: Array, weights: Array | None) -> Array:
        p = np.empty(targets.shape)
        for rest, part in inner_folds(len(p), self.n_folds, self.seed):
            some = None if weights is None else weights[rest]
            model = self._refit(take_rows(x, rest), y[rest], targets[rest], some, 0)
            p[part] = model.predict(take_rows(x, part))
        return p

    def _refit(
        self, x: Any, y: Array, targets: Array, weights: Array | None, n_steps: int
    ) -> "SklearnPredictor":
        """Fit to changed targets, kept in the range of the labels where the estimator wants it.

        A model of logarithms, or of counts, takes no target below 0.
        """
        try:
            with np.errstate(invalid="ignore", divide="ignore"):  # logarithms of numbers below 0
                return self._fit(x, targets, weights, n_steps)
        except ValueError:
            within = np.clip(targets, y.min(axis=0), y.max(axis=0))
            if np.array_equal(within, targets):
                raise
            return self._fit(x, within, weights, n_steps)

    def _fit(
        self, x: Any, targets: Array, weights: Array | None, n_steps: int
    ) -> "SklearnPredictor":
        n_rows = len(targets) * (count_items(x, targets) or 1)
        rows, outputs = as_rows(x), targets.reshape(n_rows, -1)
        takes = get_tags(self.estimator).target_tags
        if (
            weights is None
            and takes.multi_output
            and (outputs.shape[1] > 1 or not takes.single_output)
        ):
            models = [clone(self.estimator).fit(rows, outputs)]
        else:
            given: list[dict[str, Array]] = [{} for _ in outputs.T]
            name = _weight_argument(self.estimator)
            if weights is not None and name is not None:
                given = [{name: column} for column in weights.reshape(n_rows, -1).T]
            columns = outputs.T if takes.single_output else outputs.T[:, :, np.newaxis]
            models = [
                clone(self.estimator).fit(rows, column, **arguments)
                for column, arguments in zip(columns, given, strict=True)
            ]
        return SklearnPredictor(models, tuple(targets.shape[1:]), x.shape[-1], n_steps)


@dataclass(frozen=True, eq=False)
class SklearnPredictor(Predictor):
    """Fitted regressors that predict labels of any shape.

    Attributes:
        models: One for all values of a label, or one for each.
        label_shape: Shape of a label.
        n_features: Number of features it was trained with.
        n_steps: Steps on the loss, or rounds of changed targets.
        is_linear: Whether it is linear and was trained on the loss itself.
    """

    kind: ClassVar[str] = "sklearn"
    models: list[Any]
    label_shape: tuple[int, ...]
    n_features: int
    n_steps: int
    is_linear: bool = False

    @classmethod
    def mean(cls, predictors: "Sequence[SklearnPredictor]") -> "list[SklearnPredictor]":
        """Return one model that predicts the mean of several, if all are linear in the features."""
        first = predictors[0]
        if any(not one.is_linear or isinstance(one.models[0], Pipeline) for one in predictors):
            return list(predictors)
        by_output = zip(*(one.models for one in predictors), strict=True)
        n_steps = round(float(np.mean([one.n_steps for one in predictors])))
        return [replace(first, models=list(map(mean_of, by_output)), n_steps=n_steps)]

    def predict(self, x: Any) -> Array:
        x = check_features(x, n_features=self.n_features)
        outputs = np.column_stack([model.predict(as_rows(x)) for model in self.models])
        return outputs.astype(np.float64, copy=False).reshape(count_rows(x), *self.label_shape)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the regressor to a folder in the format of skops, which is not a pickle."""
        io = require("skops.io", extra="sklearn")
        content = {
            "label_shape": self.label_shape,
            "n_features": self.n_features,
            "n_steps": self.n_steps,
        }
        path = self.write(folder, content) / _FILE
        io.dump(self.models, path)
        nameless = [kind for kind in io.get_untrusted_types(file=path) if "<" in kind]
        if nameless:
            path.unlink()
            raise ModelFolderError(
                f"The estimator cannot be saved, because it holds {', '.join(nameless)}: what has "
                "no name in a module cannot be found again. Use a function or class of a module."
            )

    @classmethod
    def load(cls, folder: Path, *, trusted: Sequence[str] = (), **_: Any) -> "SklearnPredictor":
        content = cls.read(folder)
        io = require("skops.io", extra="sklearn")
        path = file_in(folder, _FILE)
        _check_size(path)
        unknown = sorted(set(io.get_untrusted_types(file=path)) - set(trusted))
        if unknown:
            raise unusable(
                folder,
                f"it holds {', '.join(unknown)}, which a forged file could misuse to crash Python "
                f"or to run code. If you trust its origin, load it with `trusted={unknown}`",
            )
        models = io.load(path, trusted=list(trusted))
        n_features = check_count("n_features", content["n_features"])
        n_steps = check_count("n_steps", content["n_steps"], minimum=0)
        return cls(models, shape_in(content), n_features, n_steps)


def _check_size(path: Path) -> None:
    """Raise if a file is larger when unpacked: skops does not compress, and zeros pack well."""
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > path.stat().st_size:
        raise ValueError(f"it has {size} bytes when unpacked")


def _weight_argument(estimator: Any) -> str | None:
    """Return the argument of `fit` that takes sample weights, None if there is none."""
    if not isinstance(estimator, Pipeline):
        return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None
    last, regressor = estimator.steps[-1]
    is_plain = not get_config()["enable_metadata_routing"]
    takes_it = is_plain and has_fit_parameter(regressor, "sample_weight")
    return f"{last}__sample_weight" if takes_it else None
