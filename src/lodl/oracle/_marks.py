"""Notes of local workers on the calls that they are about to make.

A worker that dies or hangs cannot say of which call. So it notes each call beforehand, in a file
that its parent reads.
"""

import mmap
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_MARK = struct.Struct("<qqqd")
_N_MARKS = 1024  # in a file: more than tasks are out at a time


class Mark(NamedTuple):
    """Calls `first` to `stop` of a task, and when they began, by a clock all processes share."""

    first: int
    stop: int
    began: float


@contextmanager
def marks_file() -> Iterator[str]:
    """Give the path of a new file for the marks of a run."""
    with tempfile.TemporaryDirectory(prefix="lodl-") as folder:
        path = Path(folder, "marks")
        path.write_bytes(bytes(_N_MARKS * _MARK.size))
        yield str(path)


def marker(path: str, task: int) -> Callable[[int, int], None]:
    """Return a function that notes which calls of a task, whose number is not 0, are next."""
    with Path(path).open("r+b") as file:
        marks = mmap.mmap(file.fileno(), 0)
    place = slice(task % _N_MARKS * _MARK.size, (task % _N_MARKS + 1) * _MARK.size)

    def note(first: int, stop: int) -> None:
        marks[place] = _MARK.pack(task, first, stop, time.monotonic())

    return note


def read_mark(path: str, task: int) -> Mark | None:
    """Return the calls that were begun last, None if the task has begun none."""
    noted, *mark = _MARK.unpack_from(Path(path).read_bytes(), task % _N_MARKS * _MARK.size)
    return Mark(*mark) if noted == task else None
