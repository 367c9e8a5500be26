"""CatBoost: its regressor trained on a learned loss by shifted labels.

learner = CatBoostLearner(CatBoostRegressor(depth=4))
model = learner.train(x, loss)

CatBoost calls a custom objective of several labels twice for each row and tree, which is far too
slow, and gives one of a single label blocks of rows, which the loss of an instance may straddle.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from lodl._frames import is_frame, take_rows
from lodl._typing import Array
from lodl._validation import check_count, require
from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss
from lodl.losses._squared_error_loss import is_squared_error
from lodl.training._features import as_rows, check_features, count_items, count_rows
from lodl.training._inner_folds import inner_folds
from lodl.training._label_shift import pull
from lodl.training._remembered import Remembered
from lodl.training._saving import unusable, write_predictor

require("catboost", extra="catboost")

from catboost import CatBoostError, CatBoostRegressor, Pool  # noqa: E402

__all__ = ["CatBoostLearner", "CatBoostPredictor"]

_FILE = "model.cbm"
_PATIENCE = 20  # trees without a better validation loss, unless the estimator says otherwise
_LEARNING_RATE = 0.1
_MANY = 100_000  # numbers to predict from which on more than one thread is worth it

_OURS = ("loss_function", "eval_metric", "early_stopping_rounds", "od_wait", "use_best_model")
_N_TREES = ("iterations", "n_estimators", "num_boost_round", "num_trees")
_ALIASES = (
    ("random_seed", "random_state"),
    ("learning_rate", "eta"),
    ("verbose", "verbose_eval", "silent", "logging_level"),
)

_Start = tuple[Array, Callable[[Any], Array]]
"""Out-of-fold predictions of 2-stage, and its `predict` for other instances."""


@dataclass(frozen=True, eq=False)
class CatBoostLearner:
    """Train a `CatBoostRegressor` on a learned loss, by labels that are shifted once.

    See `lodl.training._label_shift`: 2-stage says out of fold where the model errs, and the labels
    are shifted against the gradient there. With validation instances the number of trees is the one
    with the least learned loss.

    All parameters of the estimator are used except `loss_function` and `eval_metric`. If they are
    not given, `early_stopping_rounds` is 20 and `learning_rate` 0.1: CatBoost's own choice depends
    on the number of trees. Columns of strings and categories are categorical features.

    Attributes:
        estimator: The regressor; it is copied, never changed.
        n_folds: Folds for the out-of-fold predictions.
        seed: Random seed for the folds and, unless the estimator has one, the trees.
    """

    estimator: CatBoostRegressor
    n_folds: int = 3
    seed: int = 0
    _starts: Remembered[_Start] = field(default_factory=Remembered, init=False, repr=False)
    stops_early = True
    takes_frames = True

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, CatBoostRegressor):
            raise InvalidInputError(
                f"`estimator` must be a CatBoostRegressor, got {self.estimator!r}."
            )
        check_count("n_folds", self.n_folds, minimum=2)
        given = self.estimator.get_params().get("loss_function", "RMSE")
        if given not in ("RMSE", "MultiRMSE"):
            raise InvalidInputError(
                "`loss_function` of the estimator must be left at 'RMSE', because the learned loss "
                f"replaces it, got {given!r}."
            )

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        *,
        x_validation: Any = None,
        loss_validation: LearnedLoss | None = None,
        n_steps: int | None = None,
    ) -> "CatBoostPredictor":
        x, shift = check_features(x, loss.n_instances), None
        targets = loss.y
        if not is_squared_error(loss):
            shift = _Shift(*self._starts.get(x, loss.y, lambda: self._two_stage(x, loss.y)), loss)
            targets = shift.of_training
        if x_validation is None or loss_validation is None:
            return self._fit(x, targets, n_trees=n_steps)
        held_out = check_features(x_validation, loss_validation.n_instances, n_features=x.shape[-1])
        towards = loss_validation.y if shift is None else shift.of(held_out, loss_validation)
        model = self._fit(x, targets, held_out, towards)
        return model if shift is None else model.cut(held_out, loss_validation)

    def _two_stage(self, x: Any, y: Array) -> _Start:
        p, models = np.empty(y.shape), []
        for rest, part in inner_folds(len(y), self.n_folds, self.seed):
            held_out = take_rows(x, part)
            models.append(self._fit(take_rows(x, rest), y[rest], held_out, y[part]))
            p[part] = models[-1].predict(held_out)
        return p, lambda new: np.mean([model.predict(new) for model in models], axis=0)

    def _fit(
        self,
        x: Any,
        targets: Array,
        x_validation: Any = None,
        towards: Array | None = None,
        n_trees: int | None = None,
    ) -> "CatBoostPredictor":
        """Fit trees to targets; with validation instances, stop on their squared error."""
        rows = len(targets) * (count_items(x, targets) or 1)
        outputs = targets.reshape(rows, -1)
        centre = outputs.mean(axis=0)
        shape = tuple(targets.shape[1:])
        if n_trees == 0 or not np.ptp(outputs, axis=0).any():  # CatBoost rejects equal targets
            return CatBoostPredictor(None, centre, shape, x.shape[-1], n_trees or 0)
        given = self.estimator.get_params()
        model = CatBoostRegressor(**self._parameters(given, outputs, n_trees))
        categories = given.get("cat_features")
        pool = _pool(x, outputs - centre, categories)
        if towards is None:
            model.fit(pool)
            return CatBoostPredictor(model, centre, shape, x.shape[-1], model.tree_count_)
        held_out = _pool(x_validation, towards.reshape(-1, len(centre)) - centre, categories)
        patience = given.get("early_stopping_rounds") or given.get("od_wait") or _PATIENCE
        model.fit(pool, eval_set=held_out, early_stopping_rounds=patience, use_best_model=True)
        return CatBoostPredictor(model, centre, shape, x.shape[-1], model.tree_count_)

    def _parameters(
        self, given: dict[str, Any], outputs: Array, n_trees: int | None
    ) -> dict[str, Any]:
        defaults = {
            "random_seed": self.seed,
            "learning_rate": _LEARNING_RATE,
            "verbose": False,
            "allow_writing_files": False,
            "thread_count": -1 if outputs.size >= _MANY else 1,
        }
        parameters = {**_without_aliases(defaults, given), **given}
        for name in _OURS:
            parameters.pop(name, None)
        parameters["loss_function"] = "RMSE" if outputs.shape[1] == 1 else "MultiRMSE"
        if n_trees is not None:
            parameters[_name_of(_N_TREES, given)] = n_trees
        return parameters


@dataclass(frozen=True, eq=False)
class _Shift:
    """Labels shifted against the gradient of a loss where 2-stage predicts."""

    p: Array
    predict: Callable[[Any], Array]
    loss: LearnedLoss

    @property
    def of_training(self) -> Array:
        g = self.loss.gradient(self.p)
        return self.loss.y - g / pull(g, self.p - self.loss.y)

    def of(self, x: Any, loss: LearnedLoss) -> Array:
        """Return shifted labels of other instances."""
        mu = pull(self.loss.gradient(self.p), self.p - self.loss.y)
        return loss.y - loss.gradient(self.predict(x)) / mu


@dataclass(frozen=True, eq=False)
class CatBoostPredictor:
    """Fitted trees that predict labels of any shape.

    Attributes:
        model: The trees, None if there are none.
        centre: The constant of each output.
        label_shape: Shape of a label.
        n_features: Number of features it was trained with.
        n_steps: Number of trees.
    """

    model: Any
    centre: Array
    label_shape: tuple[int, ...]
    n_features: int
    n_steps: int

    def predict(self, x: Any) -> Array:
        x = check_features(x, n_features=self.n_features)
        n = count_rows(x)
        if self.model is None:
            rows = n * int(np.prod(self.label_shape)) // len(self.centre)
            return np.tile(self.centre, (rows, 1)).reshape(n, *self.label_shape)
        added = np.asarray(self.model.predict(_table(x)), dtype=np.float64)
        return (added.reshape(-1, len(self.centre)) + self.centre).reshape(n, *self.label_shape)

    def cut(self, x: Any, loss: LearnedLoss) -> "CatBoostPredictor":
        """Return the model with as many of its trees as have the least loss."""
        if self.model is None:
            return self
        stages = self.model.staged_predict(_table(x))
        outputs = (np.reshape(stage, (-1, len(self.centre))) + self.centre for stage in stages)
        scores = [loss.value(one.reshape(loss.y.shape)).mean() for one in outputs]
        n_trees = int(np.argmin(scores)) + 1
        if n_trees == self.n_steps:
            return self
        model = self.model.copy()
        model.shrink(n_trees)
        return CatBoostPredictor(model, self.centre, self.label_shape, self.n_features, n_trees)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the trees to a folder in CatBoost's own format."""
        content = {
            "centre": self.centre.tolist(),
            "label_shape": self.label_shape,
            "n_features": self.n_features,
            "n_steps": self.n_steps,
            "has_trees": self.model is not None,
        }
        path = write_predictor(folder, "catboost", content)
        if self.model is not None:
            self.model.save_model(str(path / _FILE))


def load(folder: Path, content: dict[str, Any], *_: Any) -> CatBoostPredictor:
    """Return the model in a folder; use `lodl.training.load_predictor`."""
    model = None
    if content["has_trees"]:
        try:
            model = CatBoostRegressor().load_model(str(folder / _FILE))
        except CatBoostError as error:
            raise unusable(folder, f"its {_FILE} is missing or damaged ({error})") from error
    centre, shape = np.array(content["centre"]), tuple(content["label_shape"])
    return CatBoostPredictor(model, centre, shape, content["n_features"], content["n_steps"])


def _name_of(names: tuple[str, ...], given: dict[str, Any]) -> str:
    """Return which of several names of one parameter is in use."""
    return next((name for name in names if name in given), names[0])


def _without_aliases(defaults: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return defaults of what is not given under any of its names."""
    taken = {names[0] for names in _ALIASES if any(name in given for name in names)}
    return {name: value for name, value in defaults.items() if name not in taken}


def _pool(x: Any, outputs: Array, categories: Any) -> Any:
    table = _table(x)
    if categories is None and is_frame(table):
        categories = _text_columns(table)
    return Pool(table, outputs if outputs.shape[1] > 1 else outputs[:, 0], cat_features=categories)


def _table(x: Any) -> Any:
    """Return rows as an array, or as a pandas frame whose categories are strings.

    CatBoost crashes on categories of polars, and rejects missing ones.
    """
    rows = as_rows(x)
    if not is_frame(rows):
        return rows
    table = rows.to_pandas() if hasattr(rows, "to_pandas") else rows
    return table.assign(**{name: list(map(str, table[name])) for name in _text_columns(table)})


def _text_columns(table: Any) -> list[str]:
    """Return the columns of a frame of pandas that do not hold numbers."""
    return [name for name in table.columns if getattr(table[name].dtype, "kind", "O") not in "iufb"]
