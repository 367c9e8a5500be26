"""CatBoost regressors trained on a learned loss.

CatBoost calls a custom objective of several labels twice for each row and tree, which is too slow,
and one of a single label with blocks of rows, which may split an instance. So trees are fitted to
squared error ten at a time, towards the Newton step of the loss from the predictions so far.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from lodl._arrays import is_frame, require
from lodl._typing import Array
from lodl.losses import is_squared_error
from lodl.training._features import as_pandas
from lodl.training._learner import file_in, unusable
from lodl.training.boosting._learner import BoostingLearner
from lodl.training.boosting._trees import BoostedPredictor, Boosting, BoostingObjective, Trees

require("catboost", extra="catboost")

from catboost import CatBoostError, CatBoostRegressor, Pool  # noqa: E402

__all__ = ["CatBoostLearner"]

_BLOCK = 10  # trees per Newton step
_LONG_BLOCK = 100  # trees per Newton step on squared error, which leads to the label
_DEFAULTS = {"iterations": 1000, "learning_rate": 0.1, "allow_writing_files": False}

_REPLACED = ("loss_function", "eval_metric", "early_stopping_rounds", "od_wait", "use_best_model")
_ALIASES = {
    **dict.fromkeys(("n_estimators", "num_boost_round", "num_trees"), "iterations"),
    "random_state": "random_seed",
    "eta": "learning_rate",
    "verbose_eval": "verbose",
}
_VERBOSE = {"verbose", "silent", "logging_level"}  # CatBoost takes one of them


class CatBoostBoosting(Boosting):
    """Blocks of trees, each fitted to the Newton step from the predictions of those before."""

    def __init__(self, estimator: Any, seed: int, x: Any, objective: BoostingObjective) -> None:
        self.table, self.margin, self.objective = _table(x), objective.start, objective
        is_quick = _parameters(estimator)["learning_rate"] >= 0.5  # so half of the trees will do
        self.size = _LONG_BLOCK // (1 + is_quick) if is_squared_error(objective.loss) else _BLOCK
        self.parameters = {
            "random_seed": seed,
            "thread_count": -1 if objective.is_large else 1,
            **_parameters(estimator),
            "loss_function": "RMSE" if self.margin.shape[1] == 1 else "MultiRMSE",
            "iterations": self.size,
        }
        self.blocks: list[Any] = []

    def grow(self) -> bool:
        if self.n_rounds == self.size * len(self.blocks):
            gradient, hessian = self.objective.derivatives(self.margin)
            step = -gradient / hessian
            if not np.ptp(step, axis=0).any():  # CatBoost rejects equal targets
                return False
            categories = self.parameters.get("cat_features")
            if categories is None and is_frame(self.table):
                categories = _text_columns(self.table)
            targets = step if step.shape[1] > 1 else step[:, 0]
            pool = Pool(self.table, targets, cat_features=categories)
            seed = self.parameters["random_seed"] + len(self.blocks)
            block = CatBoostRegressor(**{**self.parameters, "random_seed": seed}).fit(pool)
            self.blocks.append(block)
            self.margin = self.margin + block.predict(self.table).reshape(self.margin.shape)
        self.n_rounds += 1
        return True

    def watch(self, x: Any) -> Callable[[], Array]:
        stages = self._stages(_table(x))
        return lambda: next(stages)

    def _stages(self, table: Any) -> Iterator[Array]:
        """Yield the sum of the trees after each round. Blocks are added while it is read."""
        total: Any = 0.0
        for block in self.blocks:
            stage = total
            for added in block.staged_predict(table):
                stage = total + added
                yield stage
            total = stage

    def trees(self, n_rounds: int) -> Trees:
        n_whole, n_more = divmod(min(n_rounds, self.n_rounds), self.size)
        blocks = self.blocks[:n_whole]
        if n_more:
            blocks.append(self.blocks[n_whole].copy())
            blocks[-1].shrink(n_more)
        return Trees(blocks, n_rounds, {"n_blocks": len(blocks)})


@dataclass(frozen=True, eq=False)
class CatBoostPredictor(BoostedPredictor):
    """Trees of CatBoost, added to a constant."""

    kind: ClassVar[str] = "catboost"

    @staticmethod
    def trees_of(model: Any, x: Any) -> Trees:  # noqa: ARG004
        return Trees([model], model.tree_count_, {"n_blocks": 1})

    @staticmethod
    def added(trees: Trees, x: Any) -> Array:
        table = _table(x)
        return np.asarray(sum(block.predict(table) for block in trees.booster), dtype=np.float64)

    @classmethod
    def write_trees(cls, trees: Trees, path: Path) -> None:
        for i, block in enumerate(trees.booster):
            block.save_model(f"{path}_{i}.cbm")

    @staticmethod
    def read_trees(path: Path, trees: Trees, content: dict[str, Any]) -> Any:  # noqa: ARG004
        names = (f"{path.name}_{i}.cbm" for i in range(trees.options["n_blocks"]))
        files = [file_in(path.parent, name) for name in names]  # ends at the first that is missing
        try:
            return [CatBoostRegressor().load_model(str(file)) for file in files]
        except CatBoostError as error:
            raise unusable(path.parent, f"its trees are missing or damaged ({error})") from error


@dataclass(frozen=True, eq=False)
class CatBoostLearner(BoostingLearner):
    """Train a `CatBoostRegressor` on a learned loss: see `lodl.training.boosting._learner`.

    All of its parameters are used except `loss_function` and `eval_metric`. The default
    `learning_rate` is 0.1: CatBoost's own depends on the number of trees. Columns of strings and
    categories are categorical features.
    """

    predictor = CatBoostPredictor
    trees = CatBoostBoosting
    regressor = CatBoostRegressor
    fixed: ClassVar[dict[str, tuple[Any, ...]]] = {"loss_function": ("RMSE", "MultiRMSE", None)}

    @property
    def max_steps(self) -> int:
        return int(self.parameters["iterations"])

    @property
    def learning_rate(self) -> float:
        return float(self.parameters["learning_rate"])

    @property
    def parameters(self) -> dict[str, Any]:
        return _parameters(self.estimator)


def _parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters that are used, under one name each, with our defaults."""
    given = {
        _ALIASES.get(name, name): value
        for name, value in estimator.get_params().items()
        if value is not None and name not in _REPLACED
    }
    quiet = {} if given.keys() & _VERBOSE else {"verbose": False}
    return {**_DEFAULTS, **quiet, **given}


def _table(x: Any) -> Any:
    """Return an array, or a pandas frame whose categories are strings: others crash CatBoost."""
    if not is_frame(x):
        return x
    table = as_pandas(x)
    texts = {}
    for name in _text_columns(table):
        pairs = zip(table[name], table[name].isna(), strict=True)
        texts[name] = ["nan" if is_missing else str(value) for value, is_missing in pairs]
    return table.assign(**texts)


def _text_columns(table: Any) -> list[str]:
    """Return the columns of a pandas frame that do not hold numbers."""
    return [name for name in table.columns if getattr(table[name].dtype, "kind", "O") not in "iufb"]
