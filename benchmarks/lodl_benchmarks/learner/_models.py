"""The models: what a user would hand over, with parameters for a few hundred instances."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

from lodl.domains import Split
from lodl.training.torch import mlp

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
