"""Objects of the user's own modules, named `MODULE:OBJECT`."""

import importlib
import inspect
import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from lodl.errors import InvalidInputError
from lodl.problems import Problem


def load_problem(name: str) -> Problem:
    """Return the problem `MODULE:PROBLEM`; the module may lie in the current folder."""
    found = load_object(name, "The problem", "MODULE:PROBLEM", suits=_is_problem)
    if isinstance(found, type) and issubclass(found, Problem):
        found = _instance_of(found)
    if not isinstance(found, Problem):
        raise InvalidInputError(
            f"{name} must be a lodl.Problem or a subclass of it, got {type(found).__name__}."
        )
    return found


def load_object(
    name: str, what: str, form: str, *, suits: Callable[[Any], bool] = lambda _: True
) -> Any:
    """Return an object of a module, which may lie in the current folder.

    Args:
        name: The name of the module and that of the object, with a colon between them.
        what: What the object is, for messages.
        form: How its name is written.
        suits: Whether an object of the module may be suggested in place of one that is not there.
    """
    module_name, _, attribute = name.partition(":")
    if not attribute or not all(part.isidentifier() for part in module_name.split(".")):
        raise InvalidInputError(f"{what} must be given as {form}, got {name!r}.")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        hint = " Leave out `.py`." if module_name.endswith(".py") else ""
        raise InvalidInputError(
            f"There is no module {error.name!r} in the current folder or on PYTHONPATH.{hint}"
        ) from error
    if not hasattr(module, attribute):
        others = [name for name, value in vars(module).items() if suits(value)]
        close = get_close_matches(attribute, others, n=1)
        hint = f" Did you mean {module_name}:{close[0]}?" if close else ""
        raise InvalidInputError(f"{module_name} has no {attribute!r}.{hint}")
    return getattr(module, attribute)


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
