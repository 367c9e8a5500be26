"""Names of models that become estimators."""

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from lodl.cli._modules import load_object
from lodl.cli._options import named

_HIDDEN = (64,)  # a small network; another one is a MODULE:ESTIMATOR
_TREES = {"n_estimators": 200, "learning_rate": 0.1, "max_depth": 3}  # for hundreds of instances
_REGRESSORS: Mapping[str, tuple[str, Mapping[str, Any]]] = {  # by package
    "xgboost": ("XGBRegressor", {"enable_categorical": True}),
    "lightgbm": ("LGBMRegressor", {"verbosity": -1}),
    "catboost": ("CatBoostRegressor", {"verbose": False, "allow_writing_files": False}),
}
MODELS = f"linear, mlp, {', '.join(_REGRESSORS)} or MODULE:ESTIMATOR"


def estimator_named(
    name: str, x_shape: tuple[int, ...], label_shape: tuple[int, ...], seed: int
) -> Any:
    """Return the estimator of a name.

    Args:
        name: One of the names in `MODELS`.
        x_shape: Shape of the features.
        label_shape: Shape of a label.
        seed: Random seed of the training.
    """
    if ":" in name:
        found = load_object(name, "ESTIMATOR")
        return found() if isinstance(found, type) else found
    makers: dict[str, Callable[[], Any]] = {
        "linear": lambda: None,
        "mlp": lambda: _network(x_shape, label_shape, seed),
    }
    makers |= {package: partial(_regressor, package, seed) for package in _REGRESSORS}
    return named("model", name, makers)()


def _network(x_shape: tuple[int, ...], label_shape: tuple[int, ...], seed: int) -> Any:
    torch = importlib.import_module("lodl.training.torch")  # says what to install
    n_items = x_shape[1] if len(x_shape) > 2 else None
    return torch.mlp(x_shape[-1], label_shape, hidden=_HIDDEN, n_items=n_items, seed=seed)


def _regressor(package: str, seed: int) -> Any:
    importlib.import_module(f"lodl.training.{package}")  # says what to install
    kind, quiet = _REGRESSORS[package]
    regressor = getattr(importlib.import_module(package), kind)
    return regressor(**_TREES, random_state=seed, **quiet)
