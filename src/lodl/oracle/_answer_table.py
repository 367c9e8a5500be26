"""Answers in a store's rows (`Run`), and as arrays of instances by columns (`AnswerTable`)."""

import zlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.oracle._failures import OK, Status

_LAST_STATUS = max(Status)


class Run(NamedTuple):
    """Answers of one instance in successive columns, as bytes: a row of the store."""

    id: bytes  # identifies the instance at its label, or one sampler's points of it
    start: int  # the first column
    loss: bytes  # decision losses (float64), NaN if a call failed
    status: bytes  # the outcome of each call (uint8)
    decision: bytes  # the row of `gradient` for each call (int32), -1 if it is not known
    gradient: bytes  # derivatives of the loss of distinct decisions by the label (float64)

    @property
    def checksum(self) -> int:
        """Checksum of the content."""
        id_, start, *parts = self
        return zlib.crc32(b"".join((id_, start.to_bytes(8, "little", signed=True), *parts)))

    def is_sound(self, checksum: object) -> bool:
        """Return whether the values, read from a file, have the right types and checksum."""
        try:
            return self.checksum == checksum
        except (AttributeError, TypeError):  # a value of another type
            return False

    @property
    def n_bytes(self) -> int:
        """Size of the answers."""
        return sum(map(len, self[2:]))

    @property
    def n_answers(self) -> int:
        """Number of answers, failed calls included."""
        return len(self.status) - self.status.count(0)

    @property
    def n_failures(self) -> int:
        """Number of failed calls."""
        return self.n_answers - self.status.count(OK)

    def pieces(self, max_bytes: int, dim: int) -> "list[Run]":
        """Return runs of at most `max_bytes` bytes, each with the slopes that it needs."""
        n_calls = len(self.status)
        if self.n_bytes <= max_bytes or n_calls < 2:
            return [self]
        decision = np.frombuffer(self.decision, "<i4")
        gradient = np.frombuffer(self.gradient, "<f8").reshape(-1, dim)
        pieces = []
        for first, last in pairwise((0, n_calls // 2, n_calls)):
            used, number = np.unique(decision[first:last], return_inverse=True)
            number = (number - (used < 0).sum()).astype("<i4")  # -1 stays -1
            piece = Run(
                self.id,
                self.start + first,
                self.loss[8 * first : 8 * last],
                self.status[first:last],
                number.tobytes(),
                gradient[used[used >= 0]].tobytes(),
            )
            pieces += piece.pieces(max_bytes, dim)
        return pieces


class AnswerTable:
    """Answers about some instances; arrays have shape (n, columns).

    Attributes:
        loss: Decision losses, NaN if a call failed or was not made.
        status: The outcome of each call, 0 if it was not made.
        decision: Each answer's row of `gradient`, or -1.
    """

    def __init__(self, n: int, n_columns: int, dim: int) -> None:
        self.loss = np.full((n, n_columns), np.nan)
        self.status = np.zeros((n, n_columns), dtype=np.uint8)
        self.decision = np.full((n, n_columns), -1, dtype=np.int32)
        self._failed = np.zeros_like(self.status)  # failed slopes of known decisions
        self._gradients: list[Array] = []
        self._dim, self._n_gradients = dim, 0

    @property
    def gradient(self) -> Array:
        """Derivatives of the loss by the label, shape (m, D)."""
        return np.concatenate(self._gradients) if self._gradients else np.empty((0, self._dim))

    def add(
        self, rows: Mapping[bytes, Sequence[int]], first: int, last: int, runs: Sequence[Run]
    ) -> bool:
        """Add runs of distinct ids, the same start and the same sizes. False if one is damaged.

        A successful answer replaces a failed one, and an answer with a slope one without.

        Args:
            rows: The rows of each id.
            first: The first column of the block that the runs belong to.
            last: One after its last column.
            runs: The answers.
        """
        start, n_calls, size = runs[0].start, len(runs[0].status), len(runs[0].gradient)
        numbers = [row for run in runs for row in rows[run.id]]
        runs = [run for run in runs for _ in rows[run.id]]
        shape = len(runs), n_calls
        try:
            status = np.frombuffer(b"".join([run.status for run in runs]), np.uint8).reshape(shape)
            loss = np.frombuffer(b"".join([run.loss for run in runs]), "<f8").reshape(shape)
            decision = np.frombuffer(b"".join([run.decision for run in runs]), "<i4").reshape(shape)
            gradient = np.frombuffer(b"".join([run.gradient for run in runs]), "<f8")
            gradient = gradient.reshape(-1, self._dim)
        except ValueError:  # sizes that do not fit each other
            return False
        n_slopes = size // (8 * self._dim)
        if start < 0 or not _is_sound(status, loss, decision, gradient, n_slopes):
            return False
        begin = first + start
        n = min(n_calls, last - begin)
        if n <= 0:
            return True
        status, loss, decision = status[:, :n], loss[:, :n], decision[:, :n]
        if size:
            offset = self._n_gradients + n_slopes * np.arange(len(runs), dtype=np.int32)[:, None]
            decision = np.where(decision < 0, -1, decision + offset)
            self._gradients.append(gradient)
            self._n_gradients += len(gradient)
        cells: Any = np.array(numbers)[:, None], np.arange(begin, begin + n)
        if self.status[cells].any():
            status, loss, decision = self._better(cells, status, loss, decision)
        self.status[cells], self.loss[cells], self.decision[cells] = status, loss, decision
        return True

    def _better(self, cells: Any, status: Any, loss: Any, decision: Any) -> tuple[Any, Any, Any]:
        """Return, for each cell, the better of its answer and a new one."""
        before = _worth(self.status[cells], self.decision[cells])
        after = _worth(status, decision)
        slope_failed = (before == 2) & (after == 1)
        self._failed[cells] = np.where(slope_failed, status, self._failed[cells])
        pairs = (status, self.status), (loss, self.loss), (decision, self.decision)
        first, second, third = (np.where(after > before, new, old[cells]) for new, old in pairs)
        return first, second, third

    def require_slopes(self) -> None:
        """Turn answers without a slope into failures if the slope failed, else into pending."""
        lacks = (self.status == OK) & (self.decision < 0)
        self.status = np.where(lacks, self._failed, self.status)


def _is_sound(
    status: npt.NDArray[np.uint8],
    loss: Array,
    decision: npt.NDArray[np.int32],
    gradient: Array,
    n_slopes: int,
) -> bool:
    """Return whether exactly the successes have a loss, and every decision has a slope."""
    is_ok = status == OK
    return bool(
        (status <= _LAST_STATUS).all()
        and (np.isfinite(loss) == is_ok).all()
        and (decision >= -1).all()
        and (decision < np.where(is_ok, n_slopes, 0)).all()
        and np.isfinite(gradient).all()
    )


def _worth(status: npt.NDArray[np.uint8], decision: npt.NDArray[np.int32]) -> npt.NDArray[np.int8]:
    """Return 0 for pending calls, 1 for failures, 2 for successes, 3 for those with slopes."""
    return np.asarray((status > 0).astype(np.int8) + (status == OK) + (decision >= 0))
