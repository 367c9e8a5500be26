"""Checks of arguments: each raises an error that names the argument."""

import importlib
import math
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._frames import as_numbers, column_names, is_frame, place_of
from lodl._typing import Array, Context, InstanceContext
from lodl.errors import InvalidInputError, MissingExtraError

_NUMBERS_ADVICE = "Labels are the numbers to predict: leave out other columns."


def check_labels(y: Any, name: str = "y") -> Array:
    """Return labels as a finite float64 array of shape (n_instances, *label_shape).

    Args:
        y: An array, or a frame with a column for each number of a label.
        name: The name of the argument.
    """
    if np.ma.is_masked(y):
        raise InvalidInputError(f"`{name}` must not have masked entries; fill or drop them.")
    array = as_numbers(y, name, advice=_NUMBERS_ADVICE)
    if array.ndim < 2:
        raise InvalidInputError(
            f"`{name}` must have the instance on the first axis and the label on the others, "
            f"got shape {array.shape}. For one number per instance, use `{name}.reshape(-1, 1)`."
        )
    if array.size == 0:
        raise InvalidInputError(f"`{name}` must not be empty, got shape {array.shape}.")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InvalidInputError(
            f"`{name}` must be finite, got {array[where]} {place_of(y, where)}."
        )
    return array


def check_predictions(y_hat: npt.ArrayLike, y: Array, name: str = "y_hat") -> Array:
    """Return predictions as a finite array of the labels' shape."""
    array = check_labels(y_hat, name)
    if array.shape != y.shape:
        raise InvalidInputError(
            f"`{name}` must have the labels' shape {y.shape}, got {array.shape}."
        )
    return array


def check_context(context: Any, n_instances: int) -> Context:
    """Return contexts that are read by position, one per instance, or None.

    Args:
        context: A sequence, an array, a series, a frame whose rows become dicts, or None.
        n_instances: The number of instances.
    """
    if context is None:
        return None
    column_names(context, "context")  # distinct
    entries: Any = context
    if hasattr(context, "to_dicts"):  # a frame of polars
        entries = context.to_dicts()
    elif is_frame(context):
        entries = context.to_dict("records")
    elif hasattr(context, "to_list"):  # a series
        entries = context.to_list()
    is_sequence = hasattr(entries, "__getitem__") and getattr(entries, "shape", None) != ()
    if isinstance(entries, dict | str | bytes) or not is_sequence:
        raise InvalidInputError(
            "`context` must be a sequence or an array with one entry per instance, "
            f"got {type(context).__name__}. For several values per instance, use a list of dicts."
        )
    if len(entries) != n_instances:
        raise InvalidInputError(
            f"`context` must have one entry per instance ({n_instances}), got {len(entries)}."
        )
    checked: Context = entries
    return checked


def context_of(context: Context, instance: int) -> InstanceContext:
    """Return the context of one instance, None if there is no context."""
    return None if context is None else context[instance]


def check_count(name: str, value: Any, *, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise InvalidInputError(
            f"`{name}` must be a whole number of at least {minimum}, got {value!r}."
        )
    return int(value)


def check_flag(name: str, value: Any) -> None:
    """Check that an argument is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInputError(f"`{name}` must be True or False, got {value!r}.")


def check_seconds(name: str, value: Any) -> float:
    """Return a limit in seconds, which is infinite for None."""
    if value is None:
        return math.inf
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not value >= 0:
        raise InvalidInputError(f"`{name}` must be a number of at least 0, got {value!r}.")
    return float(value)


def check_instance_of(kind: type, name: str, value: object, *, wanted: str, hint: str = "") -> None:
    """Check that an argument is an instance of a class; if it is the class itself, say to call it.

    Args:
        kind: The class.
        name: The name of the argument.
        value: The argument.
        wanted: What the argument must be, in words.
        hint: What else may help, in a sentence.
    """
    if isinstance(value, type) and issubclass(value, kind):
        raise InvalidInputError(
            f"`{name}` must be an instance, got the class {value.__name__}. "
            f"Call it: `{value.__name__}(...)`."
        )
    if not isinstance(value, kind):
        raise InvalidInputError(f"`{name}` must be {wanted}, got {value!r}. {hint}".rstrip())


def require(module: str, extra: str) -> ModuleType:
    """Import an optional package, or raise an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"This needs the package {module!r}, which is not installed. "
            f"Install it with: pip install 'lodl[{extra}]'"
        ) from error
