"""The class and constructor parameters of a problem as texts, to store and compare."""

import inspect
import re
from dataclasses import fields, is_dataclass
from functools import partial
from numbers import Number
from types import MemberDescriptorType
from typing import Any

import numpy as np

from lodl._digest import digest
from lodl.errors import InvalidInputError
from lodl.problems._functions import FunctionWithContext
from lodl.problems._problem import Problem

_SECRET = re.compile(r"key|token|secret|passw|licen|credential", re.IGNORECASE)
_MAX_LENGTH = 80  # characters of a text; a longer one becomes a digest


def problem_parameters(problem: Problem) -> dict[str, str]:
    """Return the class name of a problem and the values of its constructor parameters.

    A parameter is an argument of `__init__` that the problem has as an attribute, by the same name
    or with a leading underscore. Only plain values are included: numbers, strings, None, lists and
    tuples of these, arrays, and the arguments bound by `functools.partial`. Functions and other
    objects, dataclass fields with `compare=False`, and attributes that are not arguments, such as
    counters and caches, are left out. So are arguments whose name suggests a secret, such as a
    licence key, because the texts are stored. Equal problems give equal texts in every process.

    Returns:
        A text for each parameter, and the name of the class under "class". Arrays and long values
        are given by their digest.

    Example:
        >>> problem_parameters(lodl.domains.knapsack(sizes=(1, 1, 1)).problem)["class"]
        'Knapsack'
    """
    texts = {"class": type(problem).__name__}
    for name in _argument_names(problem):
        text = _text_of(_attribute(problem, name))
        if text is not None:
            texts[name] = text
    return texts


def _argument_names(problem: Any) -> list[str]:
    """Return the arguments of all constructors in the class hierarchy, sorted."""
    names: set[str] = set()
    for kind in type(problem).__mro__:
        if "__init__" in vars(kind) and kind is not object:
            _, *arguments = inspect.signature(vars(kind)["__init__"]).parameters
            names.update(arguments)
    if is_dataclass(problem):
        names -= {field.name for field in fields(problem) if not field.compare}
    return sorted(name for name in names if not _SECRET.search(name))


_MISSING = object()


def _attribute(problem: Problem, name: str) -> Any:
    """Return the value of a constructor argument, or `_MISSING` if it is not an attribute."""
    for attribute in (name, f"_{name}"):
        if attribute in vars(problem):
            return vars(problem)[attribute]
        if isinstance(inspect.getattr_static(problem, attribute, None), MemberDescriptorType):
            return getattr(problem, attribute, _MISSING)  # a slot
    return _MISSING


def _text_of(value: Any) -> str | None:
    """Return a plain value as a short text, or None for another object."""
    if isinstance(value, FunctionWithContext):
        value = value.function
    if isinstance(value, partial):
        value = [*value.args, *sorted(value.keywords.items())]
    if isinstance(value, np.ndarray) or type(value).__module__.startswith("scipy.sparse"):
        return _digest_of(value)
    text = _plain_text(value)
    return text if text is None or len(text) <= _MAX_LENGTH else _digest_of(text)


def _plain_text(value: Any) -> str | None:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 2.0 is the same parameter as 2
    if value is None or isinstance(value, str | Number):
        return repr(value)
    if isinstance(value, list | tuple):
        texts = [_text_of(item) for item in value]
        return None if None in texts else f"[{', '.join(map(str, texts))}]"
    return None


def _digest_of(value: Any) -> str | None:
    try:
        return digest(value)
    except InvalidInputError:  # an array of objects that cannot be compared
        return None
