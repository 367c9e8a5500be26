"""Checks of arguments, arrays and frames, which name the argument in their errors; texts."""

import importlib
import math
import sys
import unicodedata
from collections.abc import Sequence
from itertools import combinations
from operator import ge, gt, le, lt
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, Context, Index, InstanceContext
from lodl.errors import InvalidInputError, MissingExtraError

_BOUNDS = {"above": gt, "at_least": ge, "below": lt, "at_most": le}
_NUMBERS_ADVICE = "Labels are the numbers to predict: leave out other columns."


def check_labels(y: Any, name: str = "y") -> Array:
    """Return an array, or a frame of labels, as finite float64, shape (n, *label_shape)."""
    if np.ma.is_masked(y):
        raise InvalidInputError(f"`{name}` must not have masked entries; fill or drop them.")
    array = as_numbers(y, name, advice=_NUMBERS_ADVICE)
    if array.ndim < 2:
        wanted = "the instance on the first axis and the label on the others"
        got = f"{array.shape}. For one number per instance, use `{name}.reshape(-1, 1)`"
        raise InvalidInputError(f"`{name}` must have {wanted}, got shape {got}.")
    if array.size == 0:
        raise InvalidInputError(f"`{name}` must not be empty, got shape {array.shape}.")
    if not np.isfinite(array).all():
        where = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
        got = f"{array[where]} {place_of(y, where)}. Fill the value, or leave out the instance"
        raise InvalidInputError(f"`{name}` must be finite, got {got}.")
    return array


def labels_of(y: Any, name: str = "Y") -> Array:
    """Return labels as an array, one number per instance as shape (n, 1)."""
    if is_vector(y):
        y = y.to_frame() if hasattr(y, "to_frame") else np.ma.asarray(y).reshape(-1, 1)
    return check_labels(y, name)


def is_vector(y: Any) -> bool:
    """Return whether labels are one number per instance."""
    if hasattr(y, "shape"):
        return len(y.shape) == 1
    try:
        return np.asarray(y).ndim == 1
    except ValueError:  # lists of different lengths
        return False


def check_predictions(y_hat: npt.ArrayLike, y: Array, name: str = "y_hat") -> Array:
    """Return predictions as a finite array of the labels' shape."""
    array = check_labels(y_hat, name)
    if array.shape != y.shape:
        wanted = f"the labels' shape {y.shape}"
        raise InvalidInputError(f"`{name}` must have {wanted}, got {array.shape}.")
    return array


def check_context(context: Any, n_instances: int) -> Context:
    """Return contexts that are read by position, one per instance. Rows of a frame become dicts."""
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
        wanted = "a sequence or an array with one entry per instance"
        got = f"{type(context).__name__}. For several values per instance, use a list of dicts"
        raise InvalidInputError(f"`context` must be {wanted}, got {got}.")
    if (n := len(entries)) != n_instances:
        got, shape = f"got {n}", f"{n}, {n_instances // max(n, 1)}"
        if n > 1 and n_instances % n == 0:
            got += ". If an instance has a row for each item, sort the rows by instance and pass "
            got += f"`X.to_numpy().reshape({shape}, -1)` and `Y.to_numpy().reshape({shape})`"
        wanted = f"one entry per instance ({n_instances})"
        raise InvalidInputError(f"`context` must have {wanted}, {got}.")
    return entries  # type: ignore[no-any-return]


def context_of(context: Context, instance: int) -> InstanceContext:
    """Return the context of one instance, None if there is no context."""
    return None if context is None else context[instance]


def check_count(name: str, value: Any, *, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        wanted = f"a whole number of at least {minimum}"
        raise InvalidInputError(f"`{name}` must be {wanted}, got {value!r}.")
    return int(value)


def check_flag(name: str, value: Any) -> None:
    """Check that an argument is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInputError(f"`{name}` must be True or False, got {value!r}.")


def check_number(name: str, value: Any, *, is_finite: bool = True, **bounds: float) -> float:
    """Return `value` as a float within bounds: `above`, `at_least`, `below`, `at_most`."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    is_right = is_number and (math.isfinite(value) or (value == math.inf and not is_finite))
    if not (is_right and all(_BOUNDS[kind](value, bound) for kind, bound in bounds.items())):
        wanted = " and ".join(f"{kind} {bound:g}" for kind, bound in bounds.items())
        wanted = wanted.replace("_", " ")
        wanted = f"of {wanted}" if wanted.startswith("at") else wanted
        raise InvalidInputError(f"`{name}` must be a number {wanted}, got {value!r}.")
    return float(value)


def check_instance_of(kind: type, name: str, value: object, *, wanted: str, hint: str = "") -> None:
    """Check that an argument is an instance of a class, and not the class itself."""
    if isinstance(value, type) and issubclass(value, kind):
        got = f"got the class {value.__name__}. Call it: `{value.__name__}(...)`"
        raise InvalidInputError(f"`{name}` must be an instance, {got}.")
    if not isinstance(value, kind):
        raise InvalidInputError(f"`{name}` must be {wanted}, got {value!r}. {hint}".rstrip())


def require(module: str, extra: str) -> ModuleType:
    """Import an optional package, or raise an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        needs = f"This needs the package {module!r}, which is not installed."
        raise MissingExtraError(f"{needs} Install it with: pip install 'lodl[{extra}]'") from error


Features: TypeAlias = Any  # an array (n, p) or (n, items, p), or a frame, one row per instance
_NO_NUMBERS = {"c": "complex numbers", "M": "dates", "m": "durations"}  # NumPy would convert them
_ENCODE = "Encode these in a pipeline, or use a model that takes categories, such as LightGBM."
_ENCODE_DATES = "Encode them as numbers, such as a weekday, or use a pipeline that does."


def is_frame(table: object) -> bool:
    """Return whether an object is a frame of pandas or polars."""
    return hasattr(table, "columns") and (hasattr(table, "iloc") or hasattr(table, "to_dicts"))


def column_names(table: object, name: str) -> tuple[str, ...] | None:
    """Return the distinct column names of a frame, or None if columns are only counted."""
    names = _columns(table, name)
    return None if names is None or names == _positions(len(names)) else names


def in_columns(table: Any, expected: Sequence[str] | None, name: str, whose: str) -> Any:
    """Return a frame with its columns in the expected order, and anything else unchanged."""
    # Columns are matched by position if either side has no names, or counts its columns from 0.
    given = _columns(table, name)
    if given is None:
        return table
    positions = _positions(len(given))
    wanted = positions if expected is None else tuple(expected)
    if given != wanted and set(given) == set(wanted):
        order = [given.index(column) for column in wanted]
        return table.iloc[:, order] if hasattr(table, "iloc") else table[:, order]
    if given == wanted or positions in (given, wanted):
        return table
    missing = ", ".join(repr(column) for column in wanted if column not in given)
    unknown = ", ".join(repr(column) for column in given if column not in wanted)
    wrong = [f"missing are {missing}"] if missing else []
    wrong += [f"not known are {unknown}"] if unknown else []
    raise InvalidInputError(f"`{name}` must have the columns {whose}: {'; '.join(wrong)}.")


def row_names(table: object) -> tuple[str, ...] | None:
    """Return the index of a pandas frame or series as text, or None if rows are only counted."""
    index = _index_of(table)
    if index is None or _is_default(index):
        return None
    is_date = str(index.dtype).startswith("datetime")
    return tuple(map(str, index.astype(str) if is_date else index))  # no 00:00:00 for whole days


def check_same_rows(**tables: Any) -> None:
    """Check that the rows of pandas frames and series have the same names in the same order."""
    # A default index counts as names only next to other integers: it may be left of an order.
    named = [(name, _index_of(table)) for name, table in tables.items() if hasattr(table, "iloc")]
    for first, second in combinations(named, 2):
        _check_same_index(*first, *second)


def place_of(table: Any, where: tuple[int, ...]) -> str:
    """Return the words for one entry of an array or a frame: its row and its column."""
    rows, column = row_names(table), str(where[1] if len(where) == 2 else where[1:])
    row = f"in row {where[0]}" if rows is None else f"in row {where[0]} ({rows[where[0]]!r})"
    if is_frame(table):
        column = repr(_text(table.columns[where[1]]))
    return row if hasattr(table, "to_frame") else f"{row}, column {column}"  # a series has none


def take_rows(table: Any, index: Index) -> Any:
    """Return the rows at some positions, of an array or a frame."""
    return table.iloc[index] if hasattr(table, "iloc") else table[index]


def join_rows(first: Any, second: Any) -> Any:
    """Return the rows of an array or a frame, followed by the rows of a second."""
    if not is_frame(first):
        return np.concatenate([first, second])
    if list(first.columns) != list(second.columns) or list(first.dtypes) != list(second.dtypes):
        pairs = [zip(table.columns, table.dtypes, strict=True) for table in (first, second)]
        given = " and ".join(f"({', '.join(f'{a}: {b}' for a, b in each)})" for each in pairs)
        wanted = "the same columns of the same types to be joined"
        raise InvalidInputError(f"Frames must have {wanted}, got {given}.")
    if hasattr(first, "iloc"):
        return sys.modules["pandas"].concat([first, second])
    return first.vstack(second)


def as_numbers(table: Any, name: str, *, advice: str = _ENCODE) -> npt.NDArray[Any]:
    """Return an array, a frame or a series as float64, with NaN for missing values."""
    if is_frame(table):
        columns = [_column_numbers(column) for column in _series_of(table)]
        _refuse(table, [column is None for column in columns], name, advice)
        return np.column_stack([column for column in columns if column is not None])
    try:
        raw = np.asarray(table)
        if raw.dtype.kind in _NO_NUMBERS:
            raise TypeError(f"got {_NO_NUMBERS[raw.dtype.kind]} ({raw.dtype})")
        return raw.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"`{name}` must be an array of numbers: {error}") from error


def check_readable(table: Any, name: str) -> None:
    """Check that no column of a frame holds dates, durations or complex numbers."""
    _refuse(table, list(map(_is_misread, _series_of(table))), name, _ENCODE_DATES)


def row_keys(table: Any) -> list[Any]:
    """Return a key for each row of an array or a frame. Equal rows have equal keys."""
    if not is_frame(table):
        return [row.tobytes() for row in table + 0.0]  # -0.0 equals 0.0
    return list(map(repr, zip(*(column.to_list() for column in _series_of(table)), strict=True)))


def _series_of(table: Any) -> list[Any]:
    """Return the columns by position, because names may repeat or have levels."""
    positions = range(len(table.columns))
    return [table.iloc[:, i] if hasattr(table, "iloc") else table[:, i] for i in positions]


def _refuse(table: Any, is_refused: list[bool], name: str, advice: str) -> None:
    columns = zip(table.columns, table.dtypes, is_refused, strict=True)
    refused = ", ".join(f"{_text(title)!r} ({kind})" for title, kind, refused in columns if refused)
    if refused:
        got = f"other values in {refused}. {advice}"
        raise InvalidInputError(f"`{name}` must have numbers only, got {got}")


def _columns(table: Any, name: str) -> tuple[str, ...] | None:
    if not is_frame(table):
        return None
    names = tuple(map(_text, table.columns))
    if len(set(names)) < len(names):
        repeated = next(title for i, title in enumerate(names) if title in names[:i])
        got = f"{repeated!r} more than once"
        raise InvalidInputError(f"`{name}` must have distinct column names, got {got}.")
    return names


def _text(name: Any) -> str:
    """Return the name of a column as text. A name of several levels is a tuple."""
    return " / ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _positions(n: int) -> tuple[str, ...]:
    return tuple(map(str, range(n)))


def _index_of(table: Any) -> Any:
    return table.index if hasattr(table, "iloc") else None


def _is_default(index: Any) -> bool:
    """Return whether an index counts rows from 0, as pandas does if it is given no names."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def _check_same_index(name: str, index: Any, other_name: str, other: Any) -> None:
    is_default = _is_default(index), _is_default(other)
    are_integers = index.dtype.kind in "iu" and other.dtype.kind in "iu"
    if all(is_default) or (any(is_default) and not are_integers):
        return
    ours, theirs = tuple(map(str, index)), tuple(map(str, other))
    if ours == theirs or len(ours) != len(theirs):  # numbers of rows are checked by the caller
        return
    at = next(at for at, mine in enumerate(ours) if mine != theirs[at])
    mine, given = ours[at], theirs[at]
    by_position = f"If the rows already belong together by position, use `{other_name}.to_numpy()`"
    if sorted(ours) == sorted(theirs):
        wanted = f"The rows of `{name}` and `{other_name}` must be in the same order"
        got = f"{mine!r} in `{name}` but {given!r} in `{other_name}` at position {at}"
        advice = f"Use `{other_name}.loc[{name}.index]`. {by_position}."
    else:
        wanted = f"`{other_name}` must have the row names of `{name}`"
        got, advice = f"{given!r} instead of {mine!r} at position {at}", f"{by_position}."
    raise InvalidInputError(f"{wanted}, got {got}. {advice}")


def _column_numbers(column: Any) -> Array | None:
    """Return a column as numbers, or None if it has other values."""
    if _is_misread(column):
        return None
    try:
        if not hasattr(column, "iloc"):
            return np.array(column.to_list(), dtype=np.float64)  # None becomes NaN
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        return None


def _is_misread(column: Any) -> bool:
    if not hasattr(column, "iloc"):
        return bool(column.dtype.is_temporal())
    return getattr(column.dtype, "categories", column).dtype.kind in _NO_NUMBERS


def rank_correlation(a: Array, b: Array) -> float:
    """Return Spearman's correlation of two arrays (n,); NaN if one of them is constant or empty."""
    if not len(a) or np.ptp(a) == 0 or np.ptp(b) == 0:
        return np.nan
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: Array) -> Array:
    """Return ranks like `scipy.stats.rankdata`, which is slower, and slow to import."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place])


def printable(text: str) -> str:
    r"""Return a text in which control characters are escaped: a newline becomes `\n`."""
    if text.isprintable():
        return text
    # Terminal sequences and marks of the writing direction could make a name look like another.
    pairs = ((s, s.isprintable() or unicodedata.category(s) == "Zs") for s in text)  # spaces
    return "".join(s if safe else s.encode("unicode_escape").decode() for s, safe in pairs)


def shortened(text: str, longest: int = 32) -> str:
    """Return a text of at most `longest` characters, the last an ellipsis if it was cut."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def distinct_rows(rows: Array) -> tuple[Index, Index]:
    """Return the first of each kind of equal rows (n, d), and the kind of every row."""
    rows = np.ascontiguousarray(rows + 0.0)  # no -0.0, whose bytes differ
    # Rows of bytes sort several times faster than rows of numbers, and their sums faster still.
    as_bytes = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).reshape(-1)
    sums = (rows * np.cos(np.arange(rows.shape[1]))).sum(axis=1)
    _, first, kind = np.unique(sums, return_index=True, return_inverse=True)
    if len(first) < len(rows) / 2 and (rows == rows[first[kind]]).all():
        order = as_bytes[first].argsort()
        return first[order], order.argsort()[kind]
    _, first, kind = np.unique(as_bytes, return_index=True, return_inverse=True)
    return first, kind.reshape(-1)
