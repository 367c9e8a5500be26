"""Tables with named columns, of pandas or polars, without importing either."""

import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, Context
from lodl.errors import InvalidInputError

Features: TypeAlias = Any
"""An array (n, p) or (n, items, p), or a frame with one row per instance."""


def is_frame(table: object) -> bool:
    """Return whether an object is a frame of pandas or polars."""
    return hasattr(table, "columns") and (hasattr(table, "iloc") or hasattr(table, "to_dicts"))


def column_names(table: object) -> tuple[str, ...] | None:
    """Return the names of a frame's columns, None where it is no frame or they are not texts."""
    names = tuple(getattr(table, "columns", ())) if is_frame(table) else ()
    return names if names and all(isinstance(name, str) for name in names) else None


def row_names(table: object) -> tuple[str, ...] | None:
    """Return the names of a pandas frame's rows; None where they are only counted."""
    index = getattr(table, "index", None) if hasattr(table, "iloc") else None
    if index is None or type(index).__name__ == "RangeIndex":
        return None
    return tuple(map(str, index))


def take_rows(table: Any, index: npt.NDArray[np.intp]) -> Any:
    """Return the rows at some positions, of an array or a frame."""
    return table.iloc[index] if hasattr(table, "iloc") else table[index]


def join_rows(first: Any, second: Any) -> Any:
    """Return the rows of one array or frame, then those of another like it."""
    if not is_frame(first):
        return np.concatenate([first, second])
    if list(first.columns) != list(second.columns) or list(first.dtypes) != list(second.dtypes):
        raise InvalidInputError(
            "Frames must have the same columns of the same types to be joined, got "
            f"{_described(first)} and {_described(second)}."
        )
    if hasattr(first, "iloc"):
        return sys.modules["pandas"].concat([first, second])
    return first.vstack(second)


def as_numbers(table: Any, name: str) -> npt.NDArray[Any]:
    """Return a float64 array of an array or a frame, with NaN for what is missing.

    Raises:
        InvalidInputError: Something is not a number; of a frame, the message names the columns.
    """
    if is_frame(table):
        columns = [_numbers(table[column]) for column in table.columns]
        others = [
            repr(title)
            for title, column in zip(table.columns, columns, strict=True)
            if column is None
        ]
        if others:
            raise InvalidInputError(
                f"`{name}` must have numbers only, got other values in {', '.join(others)}. Encode "
                "these columns as numbers, or use a model that takes categories, such as LightGBM."
            )
        return np.column_stack([column for column in columns if column is not None])
    try:
        return np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"`{name}` must be an array of numbers: {error}") from error


def records(context: Any) -> Context:
    """Return contexts that are read by position: the rows of a frame are dicts by column."""
    if is_frame(context):
        rows: Sequence[Any] = (
            context.to_dicts() if hasattr(context, "to_dicts") else context.to_dict("records")
        )
        return rows
    if hasattr(context, "iloc") or hasattr(context, "to_list"):  # a series
        values: Sequence[Any] = context.to_list()
        return values
    plain: Context = context
    return plain


def _numbers(column: Any) -> Array | None:
    """Return a column as numbers, None where it has something else."""
    try:
        if hasattr(column, "iloc"):
            numbers: Array = column.to_numpy(dtype=np.float64, na_value=np.nan)
            return numbers
        return np.array(column.to_list(), dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError):
        return None


def _described(table: Any) -> str:
    pairs = zip(table.columns, table.dtypes, strict=True)
    return "(" + ", ".join(f"{name}: {kind}" for name, kind in pairs) + ")"
