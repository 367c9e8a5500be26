"""Checks at the public border: each raises an error that names the argument."""

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, Context, InstanceContext
from lodl.errors import InvalidInputError, MissingExtraError


def check_labels(y: npt.ArrayLike, name: str = "y") -> Array:
    """Returns labels as a finite float64 array of shape (n_instances, *label_shape)."""
    if np.ma.is_masked(y):
        raise InvalidInputError(f"`{name}` must not have masked entries: fill or drop them.")
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
            f"`{name}` must have the instance on the first axis and a label behind it, "
            f"got shape {array.shape}. One number per instance? Use `{name}.reshape(-1, 1)`."
        )
    if array.size == 0:
        raise InvalidInputError(f"`{name}` must not be empty, got shape {array.shape}.")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InvalidInputError(f"`{name}` must be finite, got {array[where]} at {where}.")
    return array


def check_predictions(y_hat: npt.ArrayLike, y: Array, name: str = "y_hat") -> Array:
    """Returns predictions as a finite array of the labels' shape."""
    array = check_labels(y_hat, name)
    if array.shape != y.shape:
        raise InvalidInputError(
            f"`{name}` must have the labels' shape {y.shape}, got {array.shape}."
        )
    return array


def check_context(context: Context, n_instances: int) -> None:
    """Demands one context entry per instance, or none at all."""
    if context is None:
        return
    if hasattr(context, "iloc"):  # pandas: context[i] is the row labelled i, not the i-th
        raise InvalidInputError(
            "`context` must be a sequence or an array, which is read by position, got a "
            f"{type(context).__name__}, which is read by its index. Use `.to_numpy()`, or "
            '`.to_dict("records")` for a table.'
        )
    is_sequence = hasattr(context, "__getitem__") and getattr(context, "shape", None) != ()
    if isinstance(context, dict) or not is_sequence:
        raise InvalidInputError(
            "`context` must be a sequence or an array with one entry per instance, "
            f"got {type(context).__name__}. Several things per instance? Use a list of dicts."
        )
    if len(context) != n_instances:
        raise InvalidInputError(
            f"`context` must have one entry per instance ({n_instances}), got {len(context)}."
        )


def context_of(context: Context, instance: int) -> InstanceContext:
    """Returns the context of one instance, None where there is none."""
    return None if context is None else context[instance]


def check_count(name: str, value: Any, *, minimum: int = 1) -> int:
    """Returns `value` as an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise InvalidInputError(
            f"`{name}` must be a whole number of at least {minimum}, got {value!r}."
        )
    return int(value)


def check_instance_of(kind: type, name: str, value: object, *, wanted: str, hint: str = "") -> None:
    """Demands an object of a class, and tells who gave the class itself to call it.

    Args:
        kind: The class.
        name: Of the argument.
        value: What was given.
        wanted: What the argument must be.
        hint: What else may help.
    """
    if isinstance(value, type) and issubclass(value, kind):
        raise InvalidInputError(
            f"`{name}` must be an instance, got the class {value.__name__}. "
            f"Call it: `{value.__name__}(...)`."
        )
    if not isinstance(value, kind):
        raise InvalidInputError(f"`{name}` must be {wanted}, got {value!r}. {hint}".rstrip())


def require(module: str, extra: str) -> ModuleType:
    """Imports an optional package, or says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"This needs the package {module!r}, which is not installed. "
            f"Install it with: pip install 'lodl[{extra}]'"
        ) from error
