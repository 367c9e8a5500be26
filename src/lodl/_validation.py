"""Checks of arguments: each raises an error that names the argument."""

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, Context, InstanceContext
from lodl.errors import InvalidInputError, MissingExtraError


def check_labels(y: npt.ArrayLike, name: str = "y") -> Array:
    """Return labels as a finite float64 array of shape (n_instances, *label_shape)."""
    if np.ma.is_masked(y):
        raise InvalidInputError(f"`{name}` must not have masked entries; fill or drop them.")
    try:
        raw = np.asarray(y)
        if np.iscomplexobj(raw):
            raise TypeError(f"complex numbers ({raw.dtype})")
        array = raw.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"`{name}` must be an array of numbers with the instance on the first axis: {error}"
        ) from error
    if array.ndim < 2:
        raise InvalidInputError(
            f"`{name}` must have the instance on the first axis and the label on the others, "
            f"got shape {array.shape}. For one number per instance, use `{name}.reshape(-1, 1)`."
        )
    if array.size == 0:
        raise InvalidInputError(f"`{name}` must not be empty, got shape {array.shape}.")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InvalidInputError(f"`{name}` must be finite, got {array[where]} at {where}.")
    return array


def check_predictions(y_hat: npt.ArrayLike, y: Array, name: str = "y_hat") -> Array:
    """Return predictions as a finite array of the labels' shape."""
    array = check_labels(y_hat, name)
    if array.shape != y.shape:
        raise InvalidInputError(
            f"`{name}` must have the labels' shape {y.shape}, got {array.shape}."
        )
    return array


def check_context(context: Context, n_instances: int) -> None:
    """Check that there is one context entry per instance, or no context."""
    if context is None:
        return
    if hasattr(context, "iloc"):  # pandas: context[i] is the row labelled i, not the i-th row
        raise InvalidInputError(
            "`context` must be a sequence or an array, because it is read by position, got a "
            f"{type(context).__name__}, which is read by its index. Use `.to_numpy()`, or "
            '`.to_dict("records")` for a table.'
        )
    is_sequence = hasattr(context, "__getitem__") and getattr(context, "shape", None) != ()
    if isinstance(context, dict) or not is_sequence:
        raise InvalidInputError(
            "`context` must be a sequence or an array with one entry per instance, "
            f"got {type(context).__name__}. For several values per instance, use a list of dicts."
        )
    if len(context) != n_instances:
        raise InvalidInputError(
            f"`context` must have one entry per instance ({n_instances}), got {len(context)}."
        )


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
