"""Tasks and models of the learner's benchmark: every domain, with about 300 instances."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

from sklearn.model_selection import KFold

from lodl.domains import Split, item_knapsack, knapsack, newsvendor, shortest_path
from lodl.training.torch import mlp
from lodl_benchmarks.domains import (
    assignment,
    dispatch,
    energy_scheduling,
    linear_model,
    portfolio,
    travelling_salesman,
    unit_commitment,
    web_advertising,
)
from lodl_benchmarks.runner import Task


@dataclass(frozen=True, eq=False)
class LearnerTask(Task):
    """A domain with the learner's settings for it."""

    validation: Any = None  # the folds; blocks for days in order


_path = partial(shortest_path, degree=6)

TASKS: dict[str, LearnerTask] = {
    "linear": LearnerTask("Linear Model, n = 400", linear_model),
    "web": LearnerTask("Web Advertising, n = 100", web_advertising),
    "portfolio": LearnerTask(
        "Portfolio, n = 300", partial(portfolio, sizes=(200, 100, 400)), validation=KFold(5)
    ),
    "path": LearnerTask("5 x 5 path, n = 300", partial(_path, sizes=(240, 60, 1000))),
    "small-path": LearnerTask("5 x 5 path, n = 100", partial(_path, sizes=(80, 20, 1000))),
    "large-path": LearnerTask(
        "12 x 12 path, n = 300", partial(_path, sizes=(240, 60, 1000), grid=(12, 12), noise=0.3)
    ),
    "knapsack": LearnerTask("knapsack, n = 300", partial(knapsack, sizes=(240, 60, 1000))),
    "item-knapsack": LearnerTask(
        "knapsack by item, n = 300", partial(item_knapsack, sizes=(200, 100, 1000))
    ),
    "newsvendor": LearnerTask("newsvendor, n = 300", partial(newsvendor, sizes=(240, 60, 1000))),
    "assignment": LearnerTask("assignment, n = 300", partial(assignment, sizes=(240, 60, 1000))),
    "energy": LearnerTask(
        "energy scheduling, n = 300", partial(energy_scheduling, sizes=(200, 100, 400))
    ),
    "dispatch": LearnerTask("dispatch, n = 160", partial(dispatch, sizes=(120, 40, 200))),
    "commitment": LearnerTask("unit commitment, n = 300", unit_commitment),
    "salesman": LearnerTask(
        "travelling salesman, n = 300", partial(travelling_salesman, sizes=(240, 60, 300))
    ),
}
"""The tasks by name: the paper's three, then the others."""


MakeModel: TypeAlias = Callable[[Split], Any]
"""Makes an estimator for instances like these."""

_TREES = {"n_estimators": 200, "learning_rate": 0.1, "max_depth": 3, "random_state": 0}


def _network(data: Split) -> Any:
    n_items = data.x.shape[1] if data.x.ndim == 3 else None
    return mlp(data.x.shape[-1], data.y.shape[1:], hidden=(64,), n_items=n_items)


def _of(module: str, name: str, **parameters: Any) -> MakeModel:
    return lambda _: getattr(import_module(module), name)(**parameters)


MODELS: dict[str, MakeModel] = {
    "linear": lambda _: None,
    "mlp": _network,
    "xgboost": _of("xgboost", "XGBRegressor", **_TREES),
    "lightgbm": _of("lightgbm", "LGBMRegressor", **_TREES, verbose=-1),
    "catboost": _of("catboost", "CatBoostRegressor", **_TREES, verbose=False),
    "forest": _of("sklearn.ensemble", "RandomForestRegressor", min_samples_leaf=3, random_state=0),
}
"""The models by name; "linear" is the learner's own."""
