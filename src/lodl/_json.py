"""JSON of records: files written whole or not at all, values checked when they are read."""

import json
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import uuid4

import numpy as np


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Yield a path to write to. After the block it replaces the file, unless the block fails."""
    draft = path.with_name(f".{path.name[:200]}.{uuid4().hex}.draft")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> Path:
    """Write a text to a file, all of it or nothing, and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(path) as draft:
        draft.write_text(text, encoding="utf-8")
    return path


def write_json(path: Path, record: Any) -> Path:
    """Write a record (a dataclass, or JSON values) to a file and return the path."""
    return write_text(path, to_text(record) + "\n")


def to_text(values: Any) -> str:
    """Return JSON values and records as text. NumPy's numbers are written like Python's."""
    return json.dumps(values, allow_nan=False, default=plain)


def plain(value: Any) -> Any:
    """Convert a NumPy number or a record to Python values, for `json.dumps(default=...)`."""
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type):
        return vars(value)
    raise TypeError(f"a {type(value).__name__} is not a JSON value")


def from_json(kind: Any, value: Any, where: str = "") -> Any:
    """Return JSON values as a record: the inverse of `asdict` for dataclasses of plain types.

    The kind is a dataclass, `tuple[X, ...]`, `Mapping[str, X]`, a union, or a plain type. Names
    that a dataclass does not have are ignored. Errors name the place `where` a value is wrong.
    """
    if is_dataclass(kind):
        if not isinstance(value, dict):
            raise ValueError(f"`{where.lstrip('.')}` must be an object, got {repr(value)[:60]}")
        hints, names = get_type_hints(kind), [f.name for f in fields(kind) if f.name in value]
        values = {name: from_json(hints[name], value[name], f"{where}.{name}") for name in names}
        return kind(**values)  # type: ignore[operator]  # a TypeError names the missing values
    origin, arguments = get_origin(kind), get_args(kind)
    for option in arguments if origin in (Union, types.UnionType) else ():
        with suppress(TypeError, ValueError):
            return from_json(option, value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(from_json(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, dict):
        return {key: from_json(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    accepted = (int, float) if kind is float else (kind,)
    if origin is None and isinstance(value, accepted) and isinstance(value, bool) == (kind is bool):
        if kind is float:
            float(value)  # raises if it is a whole number beyond all floats
        return value
    raise ValueError(f"`{where.lstrip('.')}` has an unsuitable value, {repr(value)[:60]}")


@cache
def package_version() -> str:
    """Return the version of the installed package, which files name."""
    from importlib.metadata import version  # slow to import

    return version("lodl")
