"""A panel in two Zarr arrays: values, and what became of each call."""

from typing import TYPE_CHECKING, Any

import numpy as np

from lodl.oracle._panel import Chunk, Outcomes, Panel, SampleStatus

if TYPE_CHECKING:
    import zarr


class ZarrPanel(Panel):
    """A panel that survives the process.

    Every chunk carries a checksum. Values are written before statuses, each atomically, so that a
    chunk's statuses are the mark that it is done. What fails its checksum, or claims success
    without a finite value, is pending.
    """

    def __init__(self, values: "zarr.Array[Any]", status: "zarr.Array[Any]") -> None:
        self._values = values
        self._status = status
        height, width = values.chunks
        self.chunk_shape = (height, width)
        # A process killed between two resizes leaves arrays of different widths.
        self.shape = (values.shape[0], min(values.shape[1], status.shape[1]))

    def grow(self, n_columns: int) -> None:
        """Makes room for more columns."""
        self.shape = (self.shape[0], n_columns)
        for array in (self._values, self._status):
            array.resize(self.shape)

    def read(self, rows: slice, cols: slice) -> Outcomes:
        try:
            values = np.asarray(self._values[rows, cols])
            status = np.asarray(self._status[rows, cols])
        except (ValueError, RuntimeError):  # a checksum or a decoder objects
            return self._read_what_is_sound(rows, cols)
        unsound = np.equal(status, SampleStatus.OK) & ~np.isfinite(values)
        return Outcomes(values, np.where(unsound, np.uint8(SampleStatus.PENDING), status))

    def write(self, chunk: Chunk, outcomes: Outcomes) -> None:
        self._values[chunk.rows, chunk.cols] = outcomes.values
        self._status[chunk.rows, chunk.cols] = outcomes.status

    def _read_what_is_sound(self, rows: slice, cols: slice) -> Outcomes:
        """Reads chunk by chunk; a damaged one stays pending."""
        found = Outcomes.pending((rows.stop - rows.start, cols.stop - cols.start))
        for r in _pieces(rows, self.chunk_shape[0]):
            for c in _pieces(cols, self.chunk_shape[1]):
                if (r, c) == (rows, cols):  # this is the damaged chunk
                    return found
                part = self.read(r, c)
                place = (_shift(r, rows.start), _shift(c, cols.start))
                found.values[place] = part.values
                found.status[place] = part.status
        return found


def _pieces(whole: slice, step: int) -> list[slice]:
    """Cuts a range at the borders of chunks."""
    starts = range(whole.start // step * step, whole.stop, step)
    return [slice(max(at, whole.start), min(at + step, whole.stop)) for at in starts]


def _shift(piece: slice, origin: int) -> slice:
    return slice(piece.start - origin, piece.stop - origin)
