"""XGBoost regressors trained on a learned loss."""

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
from lodl.training._features import as_pandas, categories_of, with_categories
from lodl.training._learner import file_in
from lodl.training.boosting._learner import BoostingLearner
from lodl.training.boosting._trees import BoostedPredictor, Boosting, BoostingObjective, Trees

require("xgboost", extra="xgboost")

import xgboost  # noqa: E402

__all__ = ["XGBoostLearner"]

_REPLACED = ("objective", "eval_metric", "base_score")  # parameters that the loss replaces
_OPTIONS = {  # arguments of `xgboost.DMatrix` in a model's folder
    "missing": float | int | None,
    "enable_categorical": bool,
    "feature_types": list | None,
    "nthread": int,
}


class XGBoostBoosting(Boosting):
    """A booster that is trained round by round: `xgboost.train` could not continue."""

    def __init__(self, estimator: Any, seed: int, x: Any, objective: BoostingObjective) -> None:
        n_threads = 0 if objective.is_large else 1
        self.options = _options(estimator, n_threads)
        given = estimator.get_xgb_params().items()
        parameters = {
            "random_state": seed,
            "n_jobs": n_threads,
            **{name: value for name, value in given if value is not None and name not in _REPLACED},
            "base_score": 0.0,  # the start is added in `BoostedPredictor`
            "num_target": objective.start.shape[1],
            "disable_default_eval_metric": 1,
        }
        table = as_pandas(x)
        self.data = _matrix(table, label=np.zeros(objective.start.shape), **self.options)
        self.categories, self.objective = categories_of(table), objective
        self.booster = xgboost.Booster(parameters, [self.data])

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

    def trees(self, n_rounds: int) -> Trees:
        # A slice would lose its categories, and mistake codes of other frames for its own.
        return Trees(self.booster, n_rounds, self.options, self.categories)


@dataclass(frozen=True, eq=False)
class XGBoostPredictor(BoostedPredictor):
    """Trees of XGBoost, added to a constant."""

    kind: ClassVar[str] = "xgboost"
    suffix: ClassVar[str] = ".json"

    @staticmethod
    def trees_of(model: Any, x: Any) -> Trees:
        booster = model.get_booster()
        n_rounds, categories = booster.num_boosted_rounds(), categories_of(as_pandas(x))
        return Trees(booster, n_rounds, _options(model, 0), categories)

    @staticmethod
    def added(trees: Trees, x: Any) -> Array:
        data = _matrix(with_categories(x, trees.categories), **trees.options)
        return _margin(trees.booster, data, (0, trees.n_rounds))

    @staticmethod
    def read_trees(path: Path, trees: Trees, content: dict[str, Any]) -> Any:
        file = file_in(path.parent, path.with_suffix(".json").name)
        booster = xgboost.Booster(model_file=file)
        n_rounds, n_features = booster.num_boosted_rounds(), booster.num_features()
        if n_rounds < trees.n_rounds or n_features != content["n_features"]:
            raise ValueError(f"{file.name} does not fit `n_rounds` and `n_features`")
        options = trees.options
        is_known = options.keys() == _OPTIONS.keys()
        if not is_known or not all(isinstance(options[n], kind) for n, kind in _OPTIONS.items()):
            raise ValueError(f"`options` has unsuitable values, {options}")
        return booster


@dataclass(frozen=True, eq=False)
class XGBoostLearner(BoostingLearner):
    """Train an `XGBRegressor` on a learned loss: see `lodl.training.boosting._learner`.

    All of its parameters are used except `objective`, `eval_metric` and `base_score`. XGBoost
    itself handles missing values and, with `enable_categorical=True`, categories; unseen categories
    count as missing.
    """

    predictor = XGBoostPredictor
    trees = XGBoostBoosting
    regressor = xgboost.XGBRegressor
    also_quick: ClassVar[dict[str, Any]] = {"max_bin": 63}  # half the time of 256
    fixed: ClassVar[dict[str, tuple[Any, ...]]] = {
        "objective": ("reg:squarederror", None),
        "booster": ("gbtree", None),  # whose trees can be counted
        "callbacks": (None, []),
    }

    @property
    def max_steps(self) -> int:
        return int(self.estimator.get_num_boosting_rounds())


def _options(estimator: Any, n_threads: int) -> dict[str, Any]:
    return {
        "missing": None if math.isnan(estimator.missing) else estimator.missing,
        "enable_categorical": estimator.enable_categorical,
        "feature_types": estimator.feature_types,
        "nthread": estimator.n_jobs or n_threads,
    }


def _matrix(x: Any, *, nthread: int, **options: Any) -> Any:
    n_threads = min(nthread, os.cpu_count() or 1)  # a model may come from a larger machine
    try:
        return xgboost.DMatrix(x, nthread=n_threads, **options)
    except ValueError as error:
        raise InvalidInputError(
            f"`X` has columns that XGBoost cannot use: {error}. For columns of categories, use "
            "`XGBRegressor(enable_categorical=True)`."
        ) from error


def _margin(booster: Any, data: Any, rounds: tuple[int, int]) -> Array:
    margin = booster.predict(data, output_margin=True, iteration_range=rounds)
    return np.asarray(margin, dtype=np.float64)
