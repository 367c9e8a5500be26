"""The data files of a run's folder, read as strangers."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lodl.errors import DataError


def read_info(folder: Path, name: str) -> Mapping[str, Any] | None:
    """Returns a table or figure as data from `<folder>/<name>.json`, None where there is none."""
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    try:
        info = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read: {error}. Write it again or remove it.") from error
    if not isinstance(info, dict):
        raise DataError(f"{path} must hold an object, got a {type(info).__name__}. Remove it.")
    return info


@contextmanager
def shown(folder: Path, name: str) -> Iterator[None]:
    """While data of a file are drawn, what fails is the file's fault, and is said so."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        path = folder / f"{name}.json"
        raise DataError(
            f"{path} does not have what is to be drawn ({type(error).__name__}: {error}). "
            "Write it again or remove it."
        ) from error
