"""Answers as arrays: of one instance (`Block`, a row of a store) and of many (`AnswerTable`)."""

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.oracle._failures import OK, Status

_LAST_STATUS = max(Status)


class Block(NamedTuple):
    """Answers of one instance in successive columns."""

    loss: Array  # decision losses, NaN if a call failed or was not made
    status: npt.NDArray[np.uint8]  # outcomes of the calls, 0 if a call was not made
    decision: npt.NDArray[np.int32]  # rows of `gradient`; -1 without a slope, -1 - s if it failed
    gradient: Array  # derivatives of the loss of distinct decisions by the label, shape (m, D)
    messages: Mapping[str, str]  # the first message of each kind of failure

    @property
    def n_bytes(self) -> int:
        """Size of the arrays."""
        return sum(array.nbytes for array in self[:4])

    def in_blocks(self, start: int, size: int) -> "Iterator[tuple[int, int, Block]]":
        """Cut answers whose first column is `start` into blocks; yield number, offset, answers."""
        for number in range(start // size, -(-(start + len(self.status)) // size)):
            first = max(number * size, start)
            part = slice(first - start, (number + 1) * size - start)
            arrays = self.loss[part], self.status[part], self.decision[part]
            yield number, first - number * size, Block(*arrays, self.gradient, self.messages)

    @staticmethod
    def merged(old: "Block | None", new: "Block", start: int) -> "Block":
        """Return old and new answers together. The first column of the new ones is `start`.

        A successful answer replaces a failed one, and an answer with a slope one without.
        """
        if old is None and start == 0 and not len(new.gradient):
            return new
        n_old, n = 0 if old is None else len(old.status), start + len(new.status)
        loss, status = np.full(max(n_old, n), np.nan), np.zeros(max(n_old, n), np.uint8)
        decision, gradient = np.full(max(n_old, n), -1, np.int32), new.gradient
        if old is not None:
            loss[:n_old], status[:n_old], decision[:n_old] = old.loss, old.status, old.decision
            gradient = np.concatenate([new.gradient, old.gradient])
            decision[decision >= 0] += len(new.gradient)
        before = _worth(status[start:n], decision[start:n])
        after = _worth(new.status, new.decision)
        slope_failed = (before == 2) & (after == 1)
        decision[start:n][slope_failed] = -1 - new.status[slope_failed].astype(np.int32)
        is_better = after > before
        loss[start:n][is_better] = new.loss[is_better]
        status[start:n][is_better] = new.status[is_better]
        decision[start:n][is_better] = new.decision[is_better]
        has_slope = decision >= 0
        used, decision[has_slope] = np.unique(decision[has_slope], return_inverse=True)
        messages = {**new.messages, **({} if old is None else old.messages)}
        return Block(loss, status, decision, gradient[used], messages)

    def as_row(self, id_: bytes, number: int) -> tuple[Any, ...]:
        """Return a row of a store: id, number of the block, content, checksum."""
        arrays = [array.tobytes() for array in self[:4]]
        row: Any = (id_, number, *arrays, json.dumps(self.messages) if self.messages else "")
        return (*row, _checksum(*row))

    @classmethod
    def of_row(cls, row: Sequence[Any], dim: int) -> "Block | None":
        """Return the answers in a row of a store, or None if it is damaged."""
        *content, checksum = row
        try:
            if _checksum(*content) != checksum:
                return None
            loss, status, decision, gradient, messages = content[2:]
            block = cls(
                np.frombuffer(loss, "<f8"),
                np.frombuffer(status, np.uint8),
                np.frombuffer(decision, "<i4"),
                np.frombuffer(gradient, "<f8").reshape(-1, dim),
                json.loads(messages) if messages else {},
            )
        except (AttributeError, TypeError, ValueError, RecursionError, OverflowError):
            return None  # a value of another type or size
        n, m = len(block.status), len(block.gradient)
        fits = len(block.loss) == n == len(block.decision) and isinstance(block.messages, dict)
        fits = fits and (m == 0 or bool(np.isfinite(block.gradient).all()))
        return block if fits and block.decision.max(initial=-1) < m else None


class AnswerTable:
    """Answers about some instances; arrays have shape (n, columns).

    Attributes:
        loss: Decision losses, NaN if a call failed or was not made.
        status: The outcome of each call, 0 if it was not made.
        decision: Each answer's row of `gradient`, or a negative number.
        messages: The first message by row and kind of failure.
    """

    def __init__(self, n: int, n_columns: int, dim: int) -> None:
        self.loss = np.full((n, n_columns), np.nan)
        self.status = np.zeros((n, n_columns), dtype=np.uint8)
        self.decision = np.full((n, n_columns), -1, dtype=np.int32)
        self.messages: dict[tuple[int, str], str] = {}
        self._gradients: list[Array] = [np.empty((0, dim))]
        self._n_gradients = 0

    @property
    def gradient(self) -> Array:
        """Derivatives of the loss by the label, shape (m, D)."""
        return np.concatenate(self._gradients)

    def put(self, rows: Sequence[int], first: int, last: int, block: Block) -> None:
        """Put a block into columns `first` to `last`, as far as it reaches, of some rows."""
        n, decision = min(len(block.status), last - first), block.decision
        if len(block.gradient):
            decision = np.where(decision < 0, decision, decision + self._n_gradients)
            self._gradients.append(block.gradient)
            self._n_gradients += len(block.gradient)
        for row in rows:
            self.loss[row, first : first + n] = block.loss[:n]
            self.status[row, first : first + n] = block.status[:n]
            self.decision[row, first : first + n] = decision[:n]
            for kind, message in block.messages.items():
                self.messages.setdefault((row, kind), str(message))

    def drop_unsound(self, first: int, last: int) -> int:
        """Reset the rows of some columns that nobody can have written. Return their number."""
        columns = slice(first, last)
        sound = is_sound(self.loss[:, columns], self.status[:, columns], self.decision[:, columns])
        rows = np.flatnonzero(~sound.all(axis=1))
        self.loss[rows, columns], self.status[rows, columns] = np.nan, 0
        self.decision[rows, columns] = -1
        return len(rows)

    def require_slopes(self) -> None:
        """Turn answers without a slope into failures if the slope failed, else into pending."""
        lacks = (self.status == OK) & (self.decision < 0)
        self.status = np.where(lacks, -1 - self.decision, self.status).astype(np.uint8)


def is_sound(
    loss: Array, status: npt.NDArray[np.uint8], decision: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Return which answers can be ours: exactly the successes have a loss, and maybe a slope."""
    is_ok = status == OK
    may_be = (status <= _LAST_STATUS) & (decision >= -1 - _LAST_STATUS) & (decision != -1 - OK)
    return np.asarray(may_be & (np.isfinite(loss) == is_ok) & (is_ok | (decision == -1)))


def _checksum(id_: bytes, number: int, *content: Any) -> int:
    *arrays, messages = content
    number_bytes = number.to_bytes(8, "little", signed=True)
    return zlib.crc32(b"".join((id_, number_bytes, *arrays, messages.encode())))


def _worth(status: npt.NDArray[np.uint8], decision: npt.NDArray[np.int32]) -> npt.NDArray[np.int8]:
    """Return 0 for pending calls, 1 for failures, 2 for successes, 3 for those with slopes."""
    return np.asarray((status > 0).astype(np.int8) + (status == OK) + (decision >= 0))
