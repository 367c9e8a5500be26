"""Rows in a JSON-lines file that survives kills and is shared by several runners."""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO


class RowsFile:
    """Rows in a JSON-lines file, appended one by one, each on disk before the next.

    Writers take turns by a lock on the file. A last line torn by a kill is cut off by the next
    writer, so its row is computed again; a whole one that lacks its line break is kept.

    Args:
        path: The file; made with its folder where absent.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()

    def append(self, values: Mapping[str, Any]) -> None:
        """Write one row, given as JSON values, to the disk."""
        line = json.dumps(values, sort_keys=True, allow_nan=False).encode() + b"\n"
        with self.path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
            _mend_end(file)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def _mend_end(file: BinaryIO) -> None:
    """Go to the end of the file; cut off a torn last line, or end a whole one."""
    content = file.read()
    end = content.rfind(b"\n") + 1
    last = content[end:]
    if last and _is_json(last):
        file.write(b"\n")
    elif last:
        file.truncate(end)
        file.seek(end)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
