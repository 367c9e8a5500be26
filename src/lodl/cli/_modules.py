"""Problems, models and other things that are named on the command line."""

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from lodl.errors import InvalidInputError
from lodl.problems import Problem

_T = TypeVar("_T")

_HIDDEN = (64,)  # units of a small network; others are named MODULE:ESTIMATOR
_TREES = {
    "n_estimators": 200,
    "learning_rate": 0.1,
    "max_depth": 3,
}  # parameters that suit hundreds of instances
_REGRESSORS: Mapping[str, tuple[str, Mapping[str, Any]]] = {  # by package
    "xgboost": ("XGBRegressor", {"enable_categorical": True}),
    "lightgbm": ("LGBMRegressor", {"verbosity": -1}),
    "catboost": ("CatBoostRegressor", {"verbose": False, "allow_writing_files": False}),
}
MODELS = f"linear, mlp, {', '.join(_REGRESSORS)} or MODULE:ESTIMATOR"


def named(what: str, name: str, table: Mapping[str, _T]) -> _T:
    """Return an entry of a table. For an unknown name, raise an error that lists the names."""
    if name not in table:
        close = get_close_matches(name, table, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise InvalidInputError(f"`{what}` must be one of {', '.join(table)}, got {name!r}.{hint}")
    return table[name]


def load_problem(name: str) -> Problem:
    """Return the problem `MODULE:PROBLEM` or `FILE.py:PROBLEM`."""
    problem = load_object(name, "PROBLEM", suits=_is_problem)
    if isinstance(problem, type) and issubclass(problem, Problem):
        problem = _instance_of(problem)
    if not isinstance(problem, Problem):
        raise InvalidInputError(
            f"{name} must be a lodl.Problem or a subclass of it, got {type(problem).__name__}."
        )
    return problem


def load_object(name: str, kind: str, *, suits: Callable[[Any], bool] = lambda _: True) -> Any:
    """Return an object of a module, which may be in the current folder, or of a file.

    Args:
        name: The module or file and the object, separated by a colon.
        kind: Kind of the object, in capitals: PROBLEM.
        suits: Returns whether an object of the module may be suggested instead of a missing one.
    """
    place, _, attribute = name.rpartition(":")
    is_file = place.endswith(".py")
    if not is_file and not all(part.isidentifier() for part in place.split(".")):
        raise InvalidInputError(
            f"The {kind.lower()} must be given as MODULE:{kind} or FILE.py:{kind}, got {name!r}."
        )
    module = _file_module(Path(place)) if is_file else _imported(place, Path.cwd())
    if not hasattr(module, attribute):
        others = [name for name, value in vars(module).items() if suits(value)]
        close = get_close_matches(attribute, others, n=1)
        hint = f" Did you mean {place}:{close[0]}?" if close else ""
        raise InvalidInputError(f"{place} has no {attribute!r}.{hint}")
    return getattr(module, attribute)


def _imported(name: str, folder: Path) -> ModuleType:
    """Import a module. Installed modules come before those in the folder."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InvalidInputError(
            f"There is no module {error.name!r} in the current folder or on PYTHONPATH."
        ) from error


def _file_module(path: Path) -> ModuleType:
    """Import a file as a module of its folder, so that worker processes find it by name."""
    if not path.is_file():
        raise InvalidInputError(f"There is no file {path}.")
    module = _imported(path.stem, path.absolute().parent)
    imported = Path(module.__file__ or "")
    if not imported.is_file() or not imported.samefile(path):
        raise InvalidInputError(
            f"{path} is hidden by {imported}, a module of the same name. Rename the file."
        )
    return module


def _is_problem(value: Any) -> bool:
    is_class = isinstance(value, type) and issubclass(value, Problem)
    return isinstance(value, Problem) or (is_class and not inspect.isabstract(value))


def _instance_of(problem_class: type[Problem]) -> Problem:
    if inspect.isabstract(problem_class):
        missing = ", ".join(sorted(problem_class.__abstractmethods__))
        raise InvalidInputError(f"{problem_class.__name__} is not complete: it lacks {missing}.")
    try:
        return problem_class()
    except TypeError as error:
        raise InvalidInputError(
            f"{problem_class.__name__}() failed: {error}. Create an instance in the module and "
            "give its name instead."
        ) from error


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
        estimator = load_object(name, "ESTIMATOR")
        return estimator() if isinstance(estimator, type) else estimator
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
    importlib.import_module(f"lodl.training.boosting.{package}")  # says what to install
    kind, quiet = _REGRESSORS[package]
    regressor = getattr(importlib.import_module(package), kind)
    return regressor(**_TREES, random_state=seed, **quiet)
