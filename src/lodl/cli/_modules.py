"""Problems, models and other things that are named on the command line."""

import importlib
import inspect
import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from lodl._arrays import is_frame
from lodl.errors import InvalidInputError
from lodl.problems import Problem

_T = TypeVar("_T")

_HIDDEN = (64,)  # units of a small network; others are named FILE.py:ESTIMATOR
_TREES = {"n_estimators": 200, "learning_rate": 0.1, "max_depth": 3}  # suit hundreds of instances
_REGRESSORS: dict[str, tuple[str, dict[str, Any]]] = {  # by package
    "xgboost": ("XGBRegressor", {"enable_categorical": True}),
    "lightgbm": ("LGBMRegressor", {"verbosity": -1}),
    "catboost": ("CatBoostRegressor", {"verbose": False, "allow_writing_files": False}),
}
MODELS = f"linear, mlp, {', '.join(_REGRESSORS)} or FILE.py:ESTIMATOR"


def named(what: str, name: str, table: Mapping[str, _T]) -> _T:
    """Return an entry of a table. For an unknown name, raise an error that lists the names."""
    if name not in table:
        names, hint = ", ".join(table), meant(name, table)
        raise InvalidInputError(f"`{what}` must be one of {names}, got {name!r}.{hint}")
    return table[name]


def meant(name: str, names: Iterable[str], form: str = "{}") -> str:
    """Return a question whether the most similar name was meant, or nothing."""
    close = get_close_matches(name, list(names), n=1)
    return f" Did you mean {form.format(close[0])}?" if close else ""


def load_problem(name: str) -> Problem:
    """Return the problem `FILE.py:PROBLEM` or `MODULE:PROBLEM`."""
    problem = _load_object(name, "PROBLEM")
    if isinstance(problem, type) and issubclass(problem, Problem):
        if inspect.isabstract(problem):
            missing = ", ".join(sorted(problem.__abstractmethods__))
            raise InvalidInputError(f"{problem.__name__} is not complete: it lacks {missing}.")
        try:
            problem = problem()
        except TypeError as error:
            raise InvalidInputError(
                f"{problem.__name__}() failed: {error}. Create an instance in the module and give "
                "its name instead."
            ) from error
    if not isinstance(problem, Problem):
        got = type(problem).__name__
        raise InvalidInputError(f"{name} must be a lodl.Problem or a subclass of it, got {got}.")
    return problem


def _load_object(name: str, kind: str) -> Any:
    """Return an object of a module, which may be in the current folder, or of a file."""
    place, _, attribute = name.rpartition(":")
    is_file = place.endswith(".py")
    if not is_file and not all(map(str.isidentifier, place.split("."))):
        forms = f"FILE.py:{kind} or MODULE:{kind}"
        raise InvalidInputError(f"The {kind.lower()} must be given as {forms}, got {name!r}.")
    module = _file_module(Path(place)) if is_file else _imported(place, Path.cwd())
    if not hasattr(module, attribute):
        others = [name for name, value in vars(module).items() if not inspect.ismodule(value)]
        hint = meant(attribute, others, f"{place}:{{}}")
        raise InvalidInputError(f"{place} has no {attribute!r}.{hint}")
    return getattr(module, attribute)


def _imported(name: str, folder: Path) -> ModuleType:
    """Import a module. Installed modules come before those in the folder."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        places = "in the current folder or on PYTHONPATH"
        raise InvalidInputError(f"There is no module {error.name!r} {places}.") from error


def _file_module(path: Path) -> ModuleType:
    """Import a file as a module of its folder, so that worker processes find it by name."""
    if not path.is_file():
        raise InvalidInputError(f"There is no file {path}.")
    module = _imported(path.stem, path.absolute().parent)
    imported = Path(module.__file__ or "")
    if not imported.is_file() or not imported.samefile(path):
        why = f"is hidden by {imported}, a module of the same name"
        raise InvalidInputError(f"{path} {why}. Rename the file.")
    return module


def estimator_named(name: str, x: Any, label_shape: tuple[int, ...], seed: int) -> Any:
    """Return the estimator of a name, one of `MODELS`, for features and labels of this shape."""
    if ":" in name:
        estimator = _load_object(name, "ESTIMATOR")
        return estimator() if isinstance(estimator, type) else estimator
    kind, quiet = named("model", name, {"linear": ("", {}), "mlp": ("", {})} | _REGRESSORS)
    if name == "linear":
        categories = [] if not is_frame(x) else list(x.select_dtypes(include="category"))
        return _linear_with(categories) if categories else None
    if name == "mlp":
        torch = importlib.import_module("lodl.training.torch")  # says what to install
        n_items = x.shape[1] if len(x.shape) > 2 else None
        return torch.mlp(x.shape[-1], label_shape, hidden=_HIDDEN, n_items=n_items, seed=seed)
    importlib.import_module(f"lodl.training.boosting.{name}")  # says what to install
    return getattr(importlib.import_module(name), kind)(**_TREES, random_state=seed, **quiet)


def _linear_with(categories: list[str]) -> Any:
    """Return a linear model with a coefficient for each category; a new category has none."""
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer([("categories", encoder, categories)], remainder="passthrough")
    return make_pipeline(columns, LinearRegression())
