"""What a learned loss asks of its arrays, so that memory and file read alike."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


class Rows(Protocol):
    """An array with one row per instance: a NumPy array, or rows mapped from a loss file.

    An integer, a slice or an array of integers in brackets gives those rows as a NumPy array;
    `np.asarray(rows)` gives all of them.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, then the shape of one."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a number."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any, /) -> Any: ...

    def __array__(self) -> npt.NDArray[Any]: ...


def row_blocks(n_rows: int, block_rows: int) -> Iterator[slice]:
    """Yields slices of at most `block_rows` rows that cover `n_rows` in order."""
    for start in range(0, n_rows, block_rows):
        yield slice(start, min(start + block_rows, n_rows))
