"""Which calls are made together, and how their answers are filed."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lodl.oracle._ask import Result
from lodl.oracle._failure import OK, PENDING
from lodl.oracle._shard import Shard

_PIECES = 16  # into which calls that ended their worker are cut


class Part(NamedTuple):
    """Columns `start` to `stop` of some instances, counted row by row; column 0 is the label."""

    numbers: npt.NDArray[np.intp]
    start: int
    stop: int

    @property
    def width(self) -> int:
        return self.stop - self.start

    @property
    def n_calls(self) -> int:
        return len(self.numbers) * self.width

    def calls(self, first: int, stop: int) -> "list[Part]":
        """Return calls `first` to `stop`: whole rows, and pieces of rows before and after."""
        parts = []
        while first < stop:
            row, column = divmod(first, self.width)
            n_rows, n_columns = (stop - first) // self.width, self.width
            if column or not n_rows:
                n_rows, n_columns = 1, min(self.width - column, stop - first)
            begin = self.start + column
            parts.append(Part(self.numbers[row : row + n_rows], begin, begin + n_columns))
            first += n_rows * n_columns
        return parts

    def cut(self) -> "list[Part]":
        """Return about 16 pieces, none of them empty."""
        edges = np.linspace(0, self.n_calls, min(_PIECES, self.n_calls) + 1).astype(int).tolist()
        return [part for a, b in pairwise(edges) for part in self.calls(a, b)]

    def is_label(self, n_calls: int) -> npt.NDArray[np.bool_]:
        """Return which of the first calls are those at the labels themselves."""
        return np.asarray(self.start + np.arange(n_calls) % self.width == 0)

    def shard(
        self, result: Result, ids: tuple[Sequence[bytes], Sequence[bytes]], *, keep_failures: bool
    ) -> Shard:
        """Return the answers to the first calls as they are kept: labels first, then candidates.

        Args:
            result: What a task found out.
            ids: What answers at the labels, and at candidates, are kept under, by instance.
            keep_failures: If not, calls that failed stay pending: the next run tries them again.
        """
        status = result.status
        if not keep_failures:
            status = np.where(status == OK, status, np.uint8(PENDING))
        failures: dict[str, str] = {}
        for row, one in result.failures if keep_failures else ():
            id_ = ids[one.column > 0][self.numbers[row]].hex()
            failures.setdefault(f"{one.status.name.lower()} {id_}", one.message)
        is_label = self.is_label(len(status))
        labels, candidates = np.flatnonzero(is_label), np.flatnonzero(~is_label)
        count = np.bincount(candidates // self.width)  # none for a row with only its label yet
        n_gradients, n = result.n_gradients, (len(labels), len(count))
        has_gradient = result.decision[labels] == 0  # a label's decision is the first of its row
        first = (np.cumsum(n_gradients) - n_gradients)[: n[0]][has_gradient]
        rows = [self.numbers[:one].tolist() for one in n]
        kept_under = b"".join(
            under[row] for under, part in zip(ids, rows, strict=True) for row in part
        )
        calls = np.concatenate([labels, candidates])
        return Shard(
            np.frombuffer(kept_under, dtype=np.uint8).reshape(-1, 16),
            np.repeat(np.array([0, max(self.start - 1, 0)], dtype=np.int32), n),
            np.concatenate([np.ones(n[0]), count]).astype(np.int32),
            np.concatenate([has_gradient, n_gradients[: n[1]]]).astype(np.int32),
            result.loss[calls],
            status[calls],
            result.decision[calls],
            np.concatenate([result.gradient[first], result.gradient[: n_gradients[: n[1]].sum()]]),
            result.seconds,
            failures,
        )
