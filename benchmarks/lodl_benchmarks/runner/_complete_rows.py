"""The runner of all benchmarks: computes the rows that a folder lacks, in several processes."""

import ctypes
import fcntl
import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from joblib import Parallel, delayed

from lodl._progress import progress_bar
from lodl._threads import one_torch_thread
from lodl_benchmarks.pages import read_json_rows


class RowsFile:
    """Rows in a JSON-lines file, appended one by one, each on disk before the next.

    Writers take turns by a lock on the file. A last line torn by a kill is cut off by the next
    writer, so its row is computed again; a whole one that lacks its line break is kept.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()

    def append(self, values: Mapping[str, Any]) -> None:
        """Write one row, given as JSON values, to the disk."""
        line = json.dumps(values, sort_keys=True, allow_nan=False).encode() + b"\n"
        with self.path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed
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


_PACKAGES = ("lodl", "numpy", "scipy", "torch")  # results depend on their versions
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # as in malloc.h

RowValues: TypeAlias = Mapping[str, Any]
"""A row as JSON values."""


@dataclass(frozen=True)
class Trial:
    """A method on a task, with the data of a seed."""

    task: str
    method: str
    seed: int


@dataclass(frozen=True, eq=False)
class Computation:
    """A row to compute."""

    identity: RowValues  # the values that distinguish the row from others
    measure: Callable[[], RowValues]  # computes the other values


def complete_rows(
    computations: Sequence[Computation],
    out: Path,
    *,
    description: str,
    n_jobs: int | None = 1,
    progress: bool = True,
) -> list[RowValues]:
    """Compute the rows that are missing and return the rows of all computations, in order.

    Each row is in `rows.jsonl` of the folder `out` before the next one is awaited, and several
    runners may share the folder.
    """
    pending = [computations[i] for i in missing_rows(computations, out)]
    file = RowsFile(out / "rows.jsonl")
    with (
        progress_bar(len(pending), unit="runs", description=description, enabled=progress) as bar,
        warnings.catch_warnings(),
    ):
        # loky takes the memory of torch for a leak and starts a fresh worker: nothing is lost.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        workers = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
        for values in workers(delayed(_compute)(computation) for computation in pending):
            file.append(values)
            bar.update()
    known = _KnownRows(out)
    return [known[computation] for computation in computations]


def missing_rows(computations: Sequence[Computation], out: Path) -> list[int]:
    """Return the positions of the computations whose rows are not in the folder."""
    known = _KnownRows(out)
    return [i for i, computation in enumerate(computations) if computation not in known]


class _KnownRows:
    """The rows of a folder, by computation.

    A row belongs to a computation if it has all values of its identity. Further values do not
    count, except the version of lodl: other code makes another row. Of several rows, the last one
    counts.
    """

    def __init__(self, out: Path) -> None:
        self._rows = [values for _, values in read_json_rows(RowsFile(out / "rows.jsonl").path)]
        self._by_names: dict[tuple[str, ...], dict[str, RowValues]] = {}
        self._versions = versions()

    def __contains__(self, computation: Computation) -> bool:
        return self._key(computation.identity, tuple(computation.identity)) in self._table(
            tuple(computation.identity)
        )

    def __getitem__(self, computation: Computation) -> RowValues:
        return self._table(tuple(computation.identity))[
            self._key(computation.identity, tuple(computation.identity))
        ]

    def _table(self, names: tuple[str, ...]) -> dict[str, RowValues]:
        if names not in self._by_names:
            self._by_names[names] = {self._key(row, names): row for row in self._rows}
        return self._by_names[names]

    def _key(self, values: RowValues, names: tuple[str, ...]) -> str:
        lodl = values.get("versions", self._versions).get("lodl")
        return json.dumps([lodl, *(values.get(name) for name in names)], sort_keys=True)


@one_torch_thread()
def _compute(computation: Computation) -> RowValues:
    """Compute a row in a worker, on one thread."""
    keep_freed_memory()
    return {**computation.identity, **computation.measure(), "versions": versions()}


def versions() -> dict[str, str]:
    """Return the versions of the packages that a result depends on."""
    return {name: version(name) for name in _PACKAGES}


def keep_freed_memory() -> None:
    """Make the C library keep freed memory for the next step of training.

    It would return large arrays to the system, and fresh pages for the activations of every step
    take half of the time. Only glibc has this setting.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 2**30)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
