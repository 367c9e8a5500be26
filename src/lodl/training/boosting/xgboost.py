"""XGBoost regressors trained on a learned loss, and the loss as an objective of XGBoost.

learner = XGBoostLearner(XGBRegressor(max_depth=3))
(model,) = learner.train(x, loss)

In your own training call you only need `objective`:

    xgboost.train({"base_score": 0.0}, xgboost.DMatrix(x, label=y), obj=objective(loss))
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from lodl._arrays import require
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss
from lodl.training._features import as_pandas, categories_of, with_categories
from lodl.training._learner import file_in
from lodl.training.boosting._learner import BoostingLearner
from lodl.training.boosting._objective import BoostingObjective, CustomObjective
from lodl.training.boosting._trees import (
    N_FOR_THREADS,
    BoostedPredictor,
    Boosting,
    Trees,
    categories_in,
)

require("xgboost", extra="xgboost")

import xgboost  # noqa: E402

__all__ = ["XGBoostLearner", "objective"]

_REPLACED = ("objective", "eval_metric", "base_score")  # parameters that the loss replaces


def objective(loss: LearnedLoss) -> Callable[[Any, Any], tuple[Array, Array]]:
    """Return a learned loss as a custom objective of XGBoost.

    It fits both of XGBoost's interfaces, `xgboost.train(..., obj=objective(loss))` and
    `XGBRegressor(objective=objective(loss))`. The training data must be the instances of the loss,
    in its order: labels (n, *label_shape) flattened to (n, D), or for a model of items one row for
    each item. Gradient and Hessian are divided by the mean Hessian, so parameters such as
    `min_child_weight` act as they do with squared error.

    With a custom objective XGBoost starts from 0.5: give `base_score`, or `base_margin` at both
    training and prediction.

    Example:
        >>> import numpy as np, xgboost
        >>> from lodl.losses import squared_error_loss
        >>> from lodl.training.boosting.xgboost import objective
        >>> x, y = np.arange(8.0).reshape(8, 1), np.arange(16.0).reshape(8, 2)
        >>> data, loss = xgboost.DMatrix(x, label=y), squared_error_loss(y)
        >>> parameters = {"base_score": y.mean(), "num_target": 2}
        >>> booster = xgboost.train(parameters, data, obj=objective(loss))
        >>> booster.predict(data).shape
        (8, 2)
    """
    return CustomObjective(BoostingObjective.of(loss), xgboost.DMatrix)


_OPTIONS = {  # arguments of `xgboost.DMatrix` that a folder keeps
    "missing": float | int | None,
    "enable_categorical": bool,
    "feature_types": list | None,
    "nthread": int,
}


class XGBoostBoosting(Boosting):
    """A booster that is trained round by round.

    `xgboost.train` would do the same, but resets the booster at its end, which took a fifth of the
    time, and cannot go on afterwards.

    Args:
        x: Features, one row each.
        margin: Predictions to start from.
        objective: What to minimise.
        parameters: Parameters of the booster.
        options: Arguments of `xgboost.DMatrix`.
    """

    def __init__(
        self,
        x: Any,
        margin: Array,
        objective: BoostingObjective,
        parameters: dict[str, Any],
        options: dict[str, Any],
    ) -> None:
        table = as_pandas(x)
        self.data = _matrix(table, label=np.zeros(margin.shape), **options)
        self.categories = categories_of(table)
        self.objective = CustomObjective(objective, xgboost.DMatrix, margin)
        self.booster, self.options = xgboost.Booster(parameters, [self.data]), options

    def grow(self) -> bool:
        self.booster.update(self.data, self.n_rounds, fobj=self.objective)
        self.n_rounds += 1
        return True

    def watch(self, x: Any) -> Callable[[], Array]:
        data = _matrix(with_categories(x, self.categories), **self.options)
        seen, total = 0, np.zeros(())

        def added() -> Array:
            nonlocal seen, total
            total = total + _margin(self.booster, data, (seen, self.n_rounds))
            seen = self.n_rounds
            return total

        return added

    def trees(self, n_rounds: int) -> "XGBoostTrees":
        return XGBoostTrees(self.booster, n_rounds, self.options, self.categories)


@dataclass(frozen=True, eq=False)
class XGBoostTrees(Trees):
    """A booster, of which the first rounds count.

    A slice of it would lose its categories, and read codes of other frames as its own.
    """

    booster: Any
    n_rounds: int
    options: dict[str, Any]
    categories: dict[str, list[Any]]

    def margin(self, x: Any) -> Array:
        data = _matrix(with_categories(x, self.categories), **self.options)
        return _margin(self.booster, data, (0, self.n_rounds))

    def save(self, path: Path) -> dict[str, Any]:
        self.booster.save_model(path.with_suffix(".json"))
        missing = self.options["missing"]
        options = {**self.options, "missing": None if math.isnan(missing) else missing}
        return {"n_rounds": self.n_rounds, "options": options, "categories": self.categories}


@dataclass(frozen=True, eq=False)
class XGBoostPredictor(BoostedPredictor):
    """Trees of XGBoost, added to a constant."""

    kind: ClassVar[str] = "xgboost"

    @staticmethod
    def load_trees(path: Path, part: dict[str, Any], content: dict[str, Any]) -> XGBoostTrees:
        file = file_in(path.parent, path.with_suffix(".json").name)
        booster = xgboost.Booster(model_file=file)
        n_rounds, n_features = booster.num_boosted_rounds(), booster.num_features()
        if n_rounds < part["n_rounds"] or n_features != content["n_features"]:
            raise ValueError(f"{file.name} does not fit `n_rounds` and `n_features`")
        options = {name: part["options"][name] for name in _OPTIONS}
        if not all(isinstance(options[name], kind) for name, kind in _OPTIONS.items()):
            raise ValueError(f"`options` has unsuitable values, {options}")
        if options["missing"] is None:
            options["missing"] = math.nan
        options["nthread"] = min(options["nthread"], os.cpu_count() or 1)
        return XGBoostTrees(booster, part["n_rounds"], options, categories_in(part))


@dataclass(frozen=True, eq=False)
class XGBoostLearner(BoostingLearner):
    """Train an `XGBRegressor` on a learned loss: see `lodl.training.boosting._learner`.

    All of its parameters are used except `objective`, `eval_metric` and `base_score`, which the
    loss replaces, and of callbacks, which are refused. XGBoost itself handles missing values and,
    with `enable_categorical=True`, categories. Those are known by their names; one that was not
    there in training counts as missing.
    """

    predictor = XGBoostPredictor

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.estimator, xgboost.XGBRegressor):
            raise InvalidInputError(f"`estimator` must be an XGBRegressor, got {self.estimator!r}.")
        if self.estimator.objective not in ("reg:squarederror", None):
            raise InvalidInputError(
                "`objective` of the estimator must be left at 'reg:squarederror', because the "
                f"learned loss replaces it, got {self.estimator.objective!r}."
            )
        if self.estimator.booster not in ("gbtree", None):
            raise InvalidInputError(
                "`booster` of the estimator must be 'gbtree', whose trees can be counted, got "
                f"{self.estimator.booster!r}."
            )
        if self.estimator.callbacks:
            raise InvalidInputError(
                "`callbacks` of the estimator must be None, because the learner itself stops "
                f"training, got {self.estimator.callbacks!r}."
            )

    @property
    def max_steps(self) -> int:
        rounds: int = self.estimator.get_num_boosting_rounds()
        return rounds

    def boosting(self, x: Any, margin: Array, objective: BoostingObjective) -> XGBoostBoosting:
        return XGBoostBoosting(
            x, margin, objective, self._parameters(margin), self._matrix_options(margin.size)
        )

    def _parameters(self, margin: Array) -> dict[str, Any]:
        given = self.estimator.get_xgb_params().items()
        return {
            "random_state": self.seed,
            "n_jobs": 0 if margin.size >= N_FOR_THREADS else 1,
            **{name: value for name, value in given if value is not None and name not in _REPLACED},
            "base_score": 0.0,  # the start is added in `BoostedPredictor`
            "num_target": margin.shape[1],
            "disable_default_eval_metric": 1,
        }

    def _matrix_options(self, size: int) -> dict[str, Any]:
        return {
            "missing": self.estimator.missing,
            "enable_categorical": self.estimator.enable_categorical,
            "feature_types": self.estimator.feature_types,
            "nthread": self.estimator.n_jobs or (0 if size >= N_FOR_THREADS else 1),
        }


def _matrix(x: Any, **options: Any) -> Any:
    try:
        return xgboost.DMatrix(x, **options)
    except ValueError as error:
        raise InvalidInputError(
            f"`X` has columns that XGBoost cannot use: {error}. For columns of categories, use "
            "`XGBRegressor(enable_categorical=True)`."
        ) from error


def _margin(booster: Any, data: Any, rounds: tuple[int, int]) -> Array:
    margin = booster.predict(data, output_margin=True, iteration_range=rounds)
    return np.asarray(margin, dtype=np.float64)
