"""Splits of real data: training and test instances with their problem, and checked data files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from lodl._typing import Array
from lodl.errors import DataError
from lodl.problems import Problem

_TEST_SHARE = 0.25

Numbers: TypeAlias = tuple[float, float]
"""Smallest and largest value that a column may have."""


@dataclass(frozen=True, eq=False)
class Split:
    """Instances to train on and to test on, and the problem that is solved for them."""

    problem: Problem  # the problem, with an exact solver
    x_train: Any  # features, an array whose first axis is the instance, or a frame
    y_train: Array  # labels
    x_test: Any  # features of the test instances
    y_test: Array  # labels of the test instances
    context_train: Any = None  # what the solver knows besides the prediction, or None
    context_test: Any = None  # contexts of the test instances
    # Whether instances are in time order: folds should be consecutive blocks.
    is_ordered: bool = True
    # Quantile of each label that is best without the constraints, for objectives with costs of
    # shortage and excess; None for other objectives.
    levels: Array | None = None


def standardised(train: Array, test: Array) -> tuple[Array, Array]:
    """Return features with mean 0 and deviation 1 over all training instances and items."""
    axes = tuple(range(train.ndim - 1))
    mean, deviation = train.mean(axis=axes), train.std(axis=axes)
    deviation = np.where(deviation > 0, deviation, 1.0)
    return (train - mean) / deviation, (test - mean) / deviation


def read_table(
    path: str | Path,
    numbers: Mapping[str, Numbers],
    texts: Sequence[str] = (),
    *,
    optional: Sequence[str] = (),
) -> pd.DataFrame:
    """Read a CSV file, plain or compressed, and check its columns. Other columns are dropped.

    Args:
        path: The file.
        numbers: Columns that hold numbers, and the range of each.
        texts: Columns that hold texts.
        optional: Columns of numbers that may have empty cells.

    Raises:
        DataError: The file cannot be read, lacks a column, or a cell is not what was expected.
    """
    try:
        table = pd.read_csv(path, dtype=dict.fromkeys(texts, "str"))
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} cannot be read as CSV: {error}") from error
    missing = [name for name in (*texts, *numbers) if name not in table]
    if missing or table.empty:
        raise DataError(f"{path} must have rows and the columns {', '.join(missing)}.")
    for name, (low, high) in numbers.items():
        column = pd.to_numeric(table[name], errors="coerce")
        is_empty = table[name].isna() if name in optional else np.zeros(len(table), bool)
        wrong = ~(column.between(low, high) | is_empty)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"{path}: `{name}` must be a number from {low:g} to {high:g}, got "
                f"{table[name].iloc[row]!r} in row {row + 1}."
            )
        table[name] = column
    for name in texts:
        if table[name].isna().any():
            row = int(table[name].isna().argmax())
            raise DataError(f"{path}: `{name}` is empty in row {row + 1}.")
    return table[[*texts, *numbers]]


def dates(table: pd.DataFrame, column: str, path: str | Path) -> pd.DatetimeIndex:
    """Return a column of dates such as 2013-09-30, which must increase or stay equal."""
    try:
        days = pd.DatetimeIndex(pd.to_datetime(table[column], format="%Y-%m-%d"))
    except ValueError as error:
        raise DataError(f"{path}: `{column}` must be dates such as 2013-09-30: {error}") from error
    if not days.is_monotonic_increasing:
        raise DataError(f"{path}: the rows must be in the order of `{column}`.")
    return days


def in_order(n: int, choosing: bool) -> tuple[slice, slice]:
    """Return the instances that train and, the last quarter, those that test.

    With `choosing` the test instances are dropped and the others split in the same way.
    """
    n_train = n - int(n * _TEST_SHARE)
    if choosing:
        n, n_train = n_train, n_train - int(n_train * _TEST_SHARE)
    return slice(n_train), slice(n_train, n)
