"""Which calls are made together, and how their answers are filed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

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

    def shards(
        self, result: Result, ids: tuple[Sequence[bytes], Sequence[bytes]], *, keep_failures: bool
    ) -> Iterator[Shard]:
        """Give the answers to the first calls as they are kept.

        Args:
            result: What a task found out.
            ids: What answers at the labels, and at candidates, are kept under, by instance.
            keep_failures: If not, calls that failed stay pending: the next run tries them again.
        """
        if not keep_failures:
            status = np.where(result.status == OK, result.status, np.uint8(PENDING))
            result = replace(result, status=status, failures=[])
        rows = self.numbers[: len(result.n_gradients)].tolist()
        label_ids, candidate_ids = ([kind[row] for row in rows] for kind in ids)
        failures: dict[str, str] = {}
        for row, one in result.failures:
            id_ = (candidate_ids if one.column else label_ids)[row].hex()
            failures.setdefault(f"{one.status.name.lower()} {id_}", one.message)
        is_label = self.is_label(len(result.loss))
        if is_label.any():  # the label's decision is the first of its row
            has_gradient = result.decision[is_label] == 0
            first = (np.cumsum(result.n_gradients) - result.n_gradients)[has_gradient]
            count: Any = np.ones(len(rows))
            yield _shard(
                label_ids, 0, count, has_gradient, result.gradient[first], result, is_label
            )
        count = np.bincount(np.flatnonzero(~is_label) // self.width)  # 0 if only the label came
        n_gradients = result.n_gradients[: len(count)]
        gradient = result.gradient[: n_gradients.sum()]
        start = max(self.start - 1, 0)
        shard = _shard(
            candidate_ids[: len(count)], start, count, n_gradients, gradient, result, ~is_label
        )
        yield replace(shard, seconds=result.seconds, failures=failures)


def _shard(
    ids: Sequence[bytes],
    start: int,
    count: Any,
    n_gradients: Any,
    gradient: Any,
    result: Result,
    calls: Any,
) -> Shard:
    return Shard(
        np.frombuffer(b"".join(ids), dtype=np.uint8).reshape(-1, 16),
        np.full(len(ids), start, dtype=np.int32),
        count.astype(np.int32),
        n_gradients.astype(np.int32),
        result.loss[calls],
        result.status[calls],
        result.decision[calls],
        gradient,
    )
