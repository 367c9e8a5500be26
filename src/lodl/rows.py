"""The rows of a run, as `experiments` writes them and `report` reads them: `rows.jsonl`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lodl.errors import DataError

PARTS = ("sampling", "fitting", "training")
"""Where time goes; a row has `seconds_<part>`."""


def read_json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the line number and the values of every row, as strangers wrote them.

    Empty lines are skipped; a last line that was torn by a kill, or is just being written, is left
    out.

    Raises:
        DataError: The file, or a line of it, cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError as error:
        raise DataError(
            f"There is no {path}. The folder of a run has {path.name}: one JSON object a line, "
            "with at least `domain`, `method` and `test`, a list of decision qualities."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines):
                return
            raise DataError(f"{path}, line {number} is not JSON: {error}. Remove it.") from error
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number} is not a row: {line[:50]!r}. Remove it.")
        yield number, row
