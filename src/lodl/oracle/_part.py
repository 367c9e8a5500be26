"""Which calls are to be made, and which of them together."""

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lodl.oracle._failure import OK, PENDING
from lodl.oracle._samples import AT_ONCE, Samples

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


def pending(samples: Samples, *, retry: bool) -> list[Part]:
    """Return the calls to make, those of equal instances once; failed ones again if `retry`."""
    first: dict[tuple[bytes, bytes], int] = {}
    for number, ids in enumerate(zip(samples.instances.ids, samples.series[0].ids, strict=True)):
        first.setdefault(ids, number)
    parts, there = defaultdict[tuple[int, int], list[int]](list), []
    stored = samples.store.has([id_ for ids in first for id_ in ids])
    for ids, number in first.items():
        if not stored.isdisjoint(ids):
            there.append(number)
        else:
            parts[0, samples.n_samples + 1].append(number)
    for begin in range(0, len(there), AT_ONCE):
        numbers = there[begin : begin + AT_ONCE]
        status = samples.known(numbers).status
        is_pending = status != OK if retry else status == PENDING
        if not retry:  # without its optimum an instance has no regrets
            is_pending[status[:, 0] > OK] = False
        for number, row in zip(numbers, is_pending, strict=True):
            edges = np.flatnonzero(np.diff(row, prepend=False, append=False))
            for start, stop in edges.reshape(-1, 2).tolist():
                parts[start, stop].append(number)
    return [Part(np.array(numbers), *columns) for columns, numbers in parts.items()]
