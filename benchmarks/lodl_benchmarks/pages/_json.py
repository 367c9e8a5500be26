"""Records in JSON files, checked when they are read."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from lodl._json import from_json
from lodl.errors import DataError

_Record = TypeVar("_Record")


def read_json(path: Path, kind: type[_Record]) -> _Record | None:
    """Return the record in a file, or None if there is no file."""
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
