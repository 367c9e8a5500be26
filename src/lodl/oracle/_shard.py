"""Answers of many instances in a few long arrays, in memory or as one file.

A file is a NumPy archive (`.npz`): a zip file of plain arrays, each with a checksum. Nothing in it
is code.
"""

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.oracle._failure import OK, Status

_ID_SIZE = 16  # bytes
_MAX_SIZE = 2**28  # bytes of an unpacked file; those that are written have about 2^24
_MAX_MESSAGES = 1000  # of failures, in one file


@dataclass(frozen=True, eq=False)
class Shard:
    """Runs of answers, one after another.

    A run is the answers of one instance in successive columns. Arrays of the first group have an
    entry per run, those of the second an entry per answer.
    """

    ids: npt.NDArray[np.uint8]  # what each run is kept under, shape (runs, 16)
    start: npt.NDArray[np.int32]  # its first column
    count: npt.NDArray[np.int32]  # its columns
    n_gradients: npt.NDArray[np.int32]  # its rows of `gradient`
    loss: Array  # decision loss, NaN where a call failed
    status: npt.NDArray[np.uint8]  # what became of each call
    decision: npt.NDArray[np.int32]  # its row among those of the run, -1 where it is not known
    gradient: Array  # derivatives of the loss of distinct decisions by the label, shape (m, D)
    seconds: float = 0.0  # time spent in tasks, summed over workers
    failures: dict[str, str] = field(default_factory=dict)
    """By kind of failure and id, the message of the first such failure."""

    @classmethod
    def join(cls, shards: Sequence["Shard"]) -> "Shard":
        """Return shards as one; those with gradients must have labels of one size."""
        arrays = {
            name: np.concatenate([getattr(shard, name) for shard in shards])
            for name in _DTYPES
            if name != "gradient"
        }
        gradients = [shard.gradient for shard in shards if len(shard.gradient)]
        arrays["gradient"] = np.concatenate(gradients) if gradients else np.empty((0, 0))
        failures: dict[str, str] = {}
        for shard in shards:
            failures = shard.failures | failures
        kept = dict(list(failures.items())[:_MAX_MESSAGES])
        return cls(**arrays, seconds=sum(shard.seconds for shard in shards), failures=kept)

    @property
    def n_answers(self) -> int:
        """How many answers there are, whatever became of the calls."""
        return int(np.count_nonzero(self.status))

    @cached_property
    def n_bytes(self) -> int:
        """Size in memory."""
        return sum(getattr(self, name).nbytes for name in _DTYPES)

    def id_list(self) -> list[bytes]:
        """Return what each run is kept under."""
        content = self.ids.tobytes()
        return [content[i : i + _ID_SIZE] for i in range(0, len(content), _ID_SIZE)]

    def take(self, runs: list[int]) -> "Shard":
        """Return some of the runs."""
        count, n_gradients = self.count[runs], self.n_gradients[runs]
        at, rows = (
            np.repeat(np.take(edges, runs) - np.cumsum(sizes) + sizes, sizes)
            + np.arange(sizes.sum())
            for edges, sizes in zip(self.edges, (count, n_gradients), strict=True)
        )
        of_runs = (self.ids[runs], self.start[runs], count, n_gradients)
        return Shard(
            *of_runs, self.loss[at], self.status[at], self.decision[at], self.gradient[rows]
        )

    @cached_property
    def edges(self) -> tuple[list[int], list[int]]:
        """Where the answers, and the gradients, of each run begin and end."""
        return [0, *np.cumsum(self.count).tolist()], [0, *np.cumsum(self.n_gradients).tolist()]

    def to_bytes(self) -> bytes:
        """Return the content of a file."""
        note = json.dumps({"seconds": self.seconds, "failures": self.failures})
        arrays = {name: getattr(self, name) for name in _DTYPES}
        arrays["note"] = np.frombuffer(note.encode(), dtype=np.uint8)
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Shard":
        """Read the content of a file.

        Raises:
            ValueError: It is damaged, or no such file.
        """
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                _check_size(archive)
                arrays = {name: _read(archive, name, dtype) for name, dtype in _DTYPES.items()}
                note = json.loads(_read(archive, "note", "|u1").tobytes())
            shard = cls(**arrays, **note)  # type: ignore[arg-type]
        except Exception as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error
        if not shard._is_sound():
            raise ValueError("its arrays do not fit each other")
        return shard

    def _is_sound(self) -> bool:
        """Return whether the arrays fit each other, and every success has its value."""
        n_runs, total = len(self.start), int(self.count.sum(dtype=np.int64))
        return bool(
            self.ids.shape == (n_runs, _ID_SIZE)
            and self.count.shape == self.n_gradients.shape == (n_runs,)
            and self.loss.shape == self.status.shape == self.decision.shape == (total,)
            and self.gradient.shape[:1] == (self.n_gradients.sum(dtype=np.int64),)
            and min(x.min(initial=0) for x in (self.start, self.count, self.n_gradients)) >= 0
            and self.gradient.ndim == 2
            and self.decision.min(initial=0) >= -1
            and (self.decision < np.repeat(self.n_gradients, self.count)).all()
            and self.status.max(initial=0) <= max(Status)
            and isinstance(self.seconds, int | float)
            and 0 <= self.seconds < np.inf
            and isinstance(self.failures, dict)
            and all(isinstance(message, str) for message in self.failures.values())
            and np.isfinite(self.loss[self.status == OK]).all()
            and np.isfinite(self.gradient).all()
        )


_DTYPES = {
    "ids": "|u1",
    "start": "<i4",
    "count": "<i4",
    "n_gradients": "<i4",
    "loss": "<f8",
    "status": "|u1",
    "decision": "<i4",
    "gradient": "<f8",
}


def _check_size(archive: zipfile.ZipFile) -> None:
    """Raise if an archive would need more memory than any that is written: zeros pack well."""
    size = sum(member.file_size for member in archive.infolist())
    if size > _MAX_SIZE:
        raise ValueError(f"it has {size} bytes when unpacked, more than {_MAX_SIZE}")


def _read(archive: zipfile.ZipFile, name: str, dtype: str) -> npt.NDArray[Any]:
    array = np.lib.format.read_array(
        io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False, max_header_size=1000
    )
    if array.dtype.str != dtype:
        raise ValueError(f"{name} has type {array.dtype}")
    return array


class Known:
    """What is known about some instances; arrays have shape (n, columns)."""

    def __init__(self, n: int, n_columns: int) -> None:
        self.loss = np.full((n, n_columns), np.nan)  # NaN where a call failed or was not made
        self.status = np.zeros((n, n_columns), dtype=np.uint8)
        self.decision = np.full((n, n_columns), -1, dtype=np.int32)  # a row of `gradient`, or -1
        self._failed = np.zeros_like(self.status)  # of a slope whose decision is known
        self._gradients: list[Array] = []
        self._n_gradients = 0

    @property
    def gradient(self) -> Array:
        """Derivatives of the loss by the label, shape (m, D)."""
        return np.concatenate(self._gradients) if self._gradients else np.empty((0, 0))

    def lay(self, row: int, columns: slice, shard: Shard, first: int, last: int) -> None:
        """Lay runs `first` to `last` over as many rows from `row` on, within some columns.

        Success covers failure, and an answer with a slope one without.
        """
        starts, counts = shard.start[first:last], shard.count[first:last]
        n_rows, start, count = last - first, int(starts[0]), int(counts[0])
        if n_rows > 1 and ((starts != start).any() or (counts != count).any()):
            for i in range(n_rows):
                self.lay(row + i, columns, shard, first + i, first + i + 1)
            return
        begin = columns.start + start
        n = min(count, columns.stop - begin)
        if n <= 0:
            return
        here = slice(row, row + n_rows), slice(begin, begin + n)
        calls, gradients = (slice(edges[first], edges[last]) for edges in shard.edges)
        shape, wanted = (n_rows, count), np.s_[:, :n]
        status = shard.status[calls].reshape(shape)[wanted]
        loss = shard.loss[calls].reshape(shape)[wanted]
        numbers = shard.decision[calls].reshape(shape)[wanted]
        if gradients.stop > gradients.start:
            offset = np.array(shard.edges[1][first:last]) - gradients.start + self._n_gradients
            numbers = np.where(numbers < 0, -1, numbers + offset[:, np.newaxis])
            self._gradients.append(shard.gradient[gradients])
            self._n_gradients += gradients.stop - gradients.start
        is_better: Any = True
        if self.status[here].any():
            before, after = _worth(self.status[here], self.decision[here]), _worth(status, numbers)
            np.copyto(self._failed[here], status, where=(before == 2) & (after == 1))
            is_better = after > before
        np.copyto(self.status[here], status, where=is_better)
        np.copyto(self.loss[here], loss, where=is_better)
        np.copyto(self.decision[here], numbers, where=is_better, casting="unsafe")

    def require_slopes(self) -> None:
        """Take an answer without a slope for a failure if that failed, else for pending."""
        lacks = (self.status == OK) & (self.decision < 0)
        self.status = np.where(lacks, self._failed, self.status)


def _worth(status: npt.NDArray[np.uint8], decision: npt.NDArray[np.int32]) -> npt.NDArray[np.int8]:
    """Return 0 for pending calls, 1 for failed ones, 2 for successes, 3 for those with slopes."""
    return np.asarray((status > 0).astype(np.int8) + (status == OK) + (decision >= 0))
