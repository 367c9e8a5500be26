"""JSON files of records: written whole or not at all, checked when they are read."""

import json
import os
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from lodl.errors import DataError

_Record = TypeVar("_Record")


def write_text(path: Path, text: str) -> Path:
    """Write a text to a file, all of it or nothing, and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        return draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_json(path: Path, record: Any) -> Path:
    """Write a record (a dataclass, or JSON values) to a file and return the path."""
    values = asdict(record) if is_dataclass(record) and not isinstance(record, type) else record
    return write_text(path, to_text(values) + "\n")


def to_text(values: Any) -> str:
    """Return JSON values as text. NumPy's numbers are written like Python's."""
    return json.dumps(values, allow_nan=False, default=plain)


def plain(value: Any) -> Any:
    """Convert a NumPy number to a Python number, for `json.dumps(default=...)`."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is not a JSON value")


def read_json(path: Path, kind: type[_Record]) -> _Record | None:
    """Return the record in a file, or None if there is no file.

    Raises:
        DataError: The file does not hold such a record.
    """
    if not path.exists():
        return None
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read: {error}. Write it again or remove it.") from error
    with blaming(path):
        record: _Record = from_json(kind, values)
    return record


@contextmanager
def blaming(path: Path) -> Iterator[None]:
    """Turn errors about unsuitable values into a `DataError` that names their file."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise DataError(
            f"{path} does not have the expected content ({type(error).__name__}: {error}). "
            "Write it again or remove it."
        ) from error


def from_json(kind: Any, value: Any, where: str = "") -> Any:
    """Return JSON values as a record: the inverse of `asdict` for dataclasses of plain types.

    Args:
        kind: A dataclass, `tuple[X, ...]`, `Mapping[str, X]`, a union, or a plain type.
        value: The JSON values. Names that a dataclass does not have are ignored.
        where: Place of the value in the file, for error messages.

    Raises:
        ValueError: A value is not of its kind, or is missing.
    """
    if is_dataclass(kind):
        return _record_from_json(kind, value, where)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _first_that_fits(arguments, value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(from_json(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin is not None and issubclass(origin, Mapping) and isinstance(value, dict):
        return {key: from_json(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    accepted = (int, float) if kind is float else (kind,)
    if origin is None and isinstance(value, accepted) and isinstance(value, bool) == (kind is bool):
        if kind is float:
            float(value)  # raises if it is a whole number beyond all floats
        return value
    raise ValueError(f"`{where.lstrip('.')}` has an unsuitable value, {repr(value)[:60]}")


def _record_from_json(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"`{where.lstrip('.')}` must be an object, got {repr(value)[:60]}")
    hints = get_type_hints(kind)
    values = {
        field.name: from_json(hints[field.name], value[field.name], f"{where}.{field.name}")
        for field in fields(kind)
        if field.name in value
    }
    return kind(**values)  # a TypeError names the missing values


def _first_that_fits(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    for kind in kinds:
        try:
            return from_json(kind, value, where)
        except (TypeError, ValueError):
            continue
    raise ValueError(f"`{where.lstrip('.')}` has an unsuitable value, {repr(value)[:60]}")


def package_version() -> str:
    """Return the version of the installed package, which files name."""
    from importlib.metadata import version  # slow to import

    return version("lodl")
