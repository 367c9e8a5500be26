"""Result rows in a JSON-lines file that survives an interruption."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from lodl.rows import read_json_rows

Row: TypeAlias = Mapping[str, Any]
"""One result: JSON values by name."""


class ResultsFile:
    """Rows in a JSON-lines file, appended one by one, each on disk before the next.

    A last line torn by a kill is cut off at the next opening, so its row is computed again.

    Args:
        path: The file; made with its folder where absent.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()
        content = self.path.read_bytes()
        whole, last = content[: content.rfind(b"\n") + 1], content[content.rfind(b"\n") + 1 :]
        if last and _is_json(last):
            self._append(b"\n")
        elif last:
            os.truncate(self.path, len(whole))

    def rows(self) -> list[Row]:
        """Returns all rows in the order they were written."""
        return [row for _, row in read_json_rows(self.path)]

    def append(self, row: Row) -> None:
        """Writes one row to the disk."""
        self._append(json.dumps(row, sort_keys=True, allow_nan=False).encode() + b"\n")

    def _append(self, content: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
