"""LightGBM regressors trained on a learned loss."""

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
from lodl.training.boosting._lightgbm_text import checked_text
from lodl.training.boosting._trees import BoostedPredictor, Boosting, BoostingObjective, Trees

require("lightgbm", extra="lightgbm")

import lightgbm  # noqa: E402

__all__ = ["LightGBMLearner"]

_REPLACED = ("objective", "metric", "n_estimators", "early_stopping_rounds")  # the loss sets them
_UNKNOWN = ("importance_type", "class_weight")  # parameters that the booster refuses


class LightGBMBoosting(Boosting):
    """A booster that is trained round by round."""

    def __init__(self, estimator: Any, seed: int, x: Any, objective: BoostingObjective) -> None:
        given = estimator.get_params()
        known = {name: given[name] for name in given if name not in _REPLACED + _UNKNOWN}
        self.parameters = {
            "random_state": seed,
            "n_jobs": 0 if objective.is_large else 1,
            "verbosity": -1,
            "deterministic": True,
            "force_col_wise": True,  # otherwise a measurement of time decides
            "feature_pre_filter": False,  # too few rows to split would be an error
            **{name: value for name, value in known.items() if value is not None},
            "objective": "none",
            "num_class": objective.start.shape[1],
        }
        table = _table(x)
        self.data, self.categories = _data(table, self.parameters), categories_of(table)
        self.objective, self.booster = objective, lightgbm.Booster(self.parameters, self.data)
        self.seen: Array = np.empty(0)

    def grow(self) -> bool:
        if self.booster.update(fobj=self.objective):
            return False
        self.n_rounds += 1
        return True

    def watch(self, x: Any) -> Callable[[], Array]:
        table = with_categories(x, self.categories)
        self.booster.add_valid(_data(table, self.parameters, self.data), "watched")

        def added() -> Array:
            self.booster.eval_valid(self._see)
            return self.seen

        return added

    def _see(self, added: Array, _: Any) -> tuple[str, float, bool]:
        self.seen = added.copy()
        return "", 0.0, False

    def trees(self, n_rounds: int) -> Trees:
        return Trees(self.booster, n_rounds, categories=self.categories)


@dataclass(frozen=True, eq=False)
class LightGBMPredictor(BoostedPredictor):
    """Trees of LightGBM, added to a constant."""

    kind: ClassVar[str] = "lightgbm"
    suffix: ClassVar[str] = ".txt"

    @staticmethod
    def trees_of(model: Any, x: Any) -> Trees:
        booster = model.booster_
        return Trees(booster, booster.current_iteration(), categories=categories_of(as_pandas(x)))

    @staticmethod
    def added(trees: Trees, x: Any) -> Array:
        # By default, predicting sets the threads of the process to all cores, and a booster that
        # grows further waits for them in every split.
        options = {"raw_score": True, "num_threads": trees.booster.params.get("n_jobs", 0)}
        table = with_categories(x, trees.categories)
        margin = trees.booster.predict(table, num_iteration=trees.n_rounds, **options)
        return np.asarray(margin, dtype=np.float64)

    @staticmethod
    def read_trees(path: Path, trees: Trees, content: dict[str, Any]) -> Any:
        file = file_in(path.parent, path.with_suffix(".txt").name)
        text = checked_text(
            file.read_text(encoding="utf-8"),
            n_features=content["n_features"],
            n_outputs=len(content["centre"]) if trees.output is None else 1,
            categories=trees.categories,
        )
        return lightgbm.Booster(model_str=text)


@dataclass(frozen=True, eq=False)
class LightGBMLearner(BoostingLearner):
    """Train an `LGBMRegressor` on a learned loss: see `lodl.training.boosting._learner`.

    All of its parameters are used except `objective` and `metric`. LightGBM itself handles missing
    values and categories; a category that did not occur in training counts as missing.
    """

    predictor = LightGBMPredictor
    trees = LightGBMBoosting
    regressor = lightgbm.LGBMRegressor
    also_quick: ClassVar[dict[str, Any]] = {"max_bin": 63}
    fixed: ClassVar[dict[str, tuple[Any, ...]]] = {
        "objective": (None, "regression"),
        "boosting_type": ("gbdt",),  # whose trees can be counted
    }


def _data(x: Any, parameters: dict[str, Any], reference: Any = None) -> Any:
    # LightGBM changes the parameters that it is given.
    zeros, given = np.zeros(x.shape[0]), dict(parameters)
    return lightgbm.Dataset(x, label=zeros, params=given, reference=reference)


def _table(x: Any) -> Any:
    """Return an array or a pandas frame: LightGBM cannot read categories of polars."""
    table = as_pandas(x)
    texts = [name for name in getattr(table, "columns", ()) if table[name].dtype.kind not in "iufb"]
    if texts := [name for name in texts if table[name].dtype != "category"]:
        raise InvalidInputError(
            f"`X` must have columns of numbers or categories for LightGBM, got others in {texts}. "
            'Use `x.astype({name: "category"})`, or `pl.Categorical` in polars.'
        )
    return table
