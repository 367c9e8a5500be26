"""A matrix of outcomes of oracle calls, filled chunk by chunk."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from lodl._typing import Array

_BAND_SIZE = 2**20  # samples: 9 MB


class SampleStatus(IntEnum):
    """What became of an oracle call."""

    PENDING = 0
    OK = 1
    RAISED = 2
    NON_FINITE = 3
    WRONG_SHAPE = 4
    NO_OPTIMUM = 5  # not called: the oracle failed at the instance's own label
    BAD_CANDIDATE = 6  # not called: it is not finite


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Values and statuses of a rectangle of oracle calls, both of shape (rows, columns).

    A value is NaN unless its status is OK.
    """

    values: Array
    status: npt.NDArray[np.uint8]

    @classmethod
    def pending(cls, shape: tuple[int, int]) -> "Outcomes":
        """Returns a rectangle in which nothing has been called yet."""
        return cls(np.full(shape, np.nan), np.zeros(shape, dtype=np.uint8))

    @property
    def is_pending(self) -> npt.NDArray[np.bool_]:
        """Which calls were not made yet."""
        return np.equal(self.status, SampleStatus.PENDING)

    @property
    def is_ok(self) -> npt.NDArray[np.bool_]:
        """Which calls succeeded."""
        return np.equal(self.status, SampleStatus.OK)

    @property
    def is_failed(self) -> npt.NDArray[np.bool_]:
        """Which calls failed."""
        return np.greater(self.status, SampleStatus.OK)

    def without_failures(self) -> "Outcomes":
        """Returns this rectangle with failed calls pending again."""
        return Outcomes(self.values, np.where(self.is_failed, np.uint8(0), self.status))

    def updated_by(self, other: "Outcomes") -> "Outcomes":
        """Returns this rectangle with what the other one knows better."""
        pending = other.is_pending
        return Outcomes(
            np.where(pending, self.values, other.values),
            np.where(pending, self.status, other.status),
        )


@dataclass(frozen=True)
class Chunk:
    """A rectangle of a panel: the unit of a task and of saving."""

    rows: slice
    cols: slice

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.rows.stop - self.rows.start, self.cols.stop - self.cols.start


class Panel(ABC):
    """A matrix of outcomes, one row per instance.

    Attributes:
        shape: Number of rows and columns.
        chunk_shape: Rows and columns of a chunk; those at the far edges may be smaller.
    """

    shape: tuple[int, int]
    chunk_shape: tuple[int, int]

    @abstractmethod
    def read(self, rows: slice, cols: slice) -> Outcomes:
        """Returns a rectangle; what is missing or damaged is pending."""

    @abstractmethod
    def write(self, chunk: Chunk, outcomes: Outcomes) -> None:
        """Saves one whole chunk: all of it or nothing."""

    def chunks(self, rows: slice, n_columns: int) -> Iterator[Chunk]:
        """Gives the chunks that cover the first columns of a band of rows."""
        height, width = self.chunk_shape
        for top in range(rows.start, rows.stop, height):
            for left in range(0, n_columns, width):
                yield Chunk(
                    slice(top, min(top + height, self.shape[0])),
                    slice(left, min(left + width, self.shape[1])),
                )

    def bands(self, n_columns: int) -> Iterator[slice]:
        """Gives bands of whole chunks that are read at once, small beside memory."""
        height = self.chunk_shape[0]
        step = max(_BAND_SIZE // (height * n_columns), 1) * height
        for top in range(0, self.shape[0], step):
            yield slice(top, min(top + step, self.shape[0]))


class MemoryPanel(Panel):
    """A panel in this process's memory."""

    def __init__(self, outcomes: Outcomes, chunk_shape: tuple[int, int]) -> None:
        n_rows, n_columns = outcomes.status.shape
        self.shape = (n_rows, n_columns)
        self.chunk_shape = chunk_shape
        self._outcomes = outcomes

    def read(self, rows: slice, cols: slice) -> Outcomes:
        return Outcomes(self._outcomes.values[rows, cols], self._outcomes.status[rows, cols])

    def write(self, chunk: Chunk, outcomes: Outcomes) -> None:
        self._outcomes.values[chunk.rows, chunk.cols] = outcomes.values
        self._outcomes.status[chunk.rows, chunk.cols] = outcomes.status
