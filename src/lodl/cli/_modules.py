"""Objects of a user's modules and files, named `MODULE:OBJECT` or `FILE.py:OBJECT`."""

import importlib
import inspect
import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from lodl.errors import InvalidInputError
from lodl.problems import Problem


def load_problem(name: str) -> Problem:
    """Return the problem `MODULE:PROBLEM` or `FILE.py:PROBLEM`."""
    found = load_object(name, "PROBLEM", suits=_is_problem)
    if isinstance(found, type) and issubclass(found, Problem):
        found = _instance_of(found)
    if not isinstance(found, Problem):
        raise InvalidInputError(
            f"{name} must be a lodl.Problem or a subclass of it, got {type(found).__name__}."
        )
    return found


def load_object(name: str, kind: str, *, suits: Callable[[Any], bool] = lambda _: True) -> Any:
    """Return an object of a module, which may be in the current folder, or of a file.

    Args:
        name: The module or file and the object, separated by a colon.
        kind: What the object is, in capitals: PROBLEM.
        suits: Whether an object of the module may be suggested in place of one that is not there.
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
    found = Path(module.__file__ or "")
    if not found.is_file() or not found.samefile(path):
        raise InvalidInputError(
            f"{path} is hidden by {found}, a module of the same name. Rename the file."
        )
    return module


def _is_problem(found: Any) -> bool:
    is_class = isinstance(found, type) and issubclass(found, Problem)
    return isinstance(found, Problem) or (is_class and not inspect.isabstract(found))


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
