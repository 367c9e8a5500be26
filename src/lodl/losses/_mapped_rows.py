"""Rows of an array in a file, read and checked when they are asked for."""

import math
import mmap
import os
import weakref
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl.errors import LossFileError

_BLOCK_BYTES = 16_384  # a row at random costs the check of one block, some 10 us


def block_rows_of(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Returns how many rows of an array share a checksum; part of the file format."""
    row_bytes = dtype.itemsize * math.prod(shape[1:])
    return max(1, _BLOCK_BYTES // max(1, row_bytes))


class MappedFile:
    """A file mapped into memory, read-only.

    A mapped file that shrinks kills the process that reads it, and one that is written in place
    changes under a reader's eyes: `check_unchanged` goes before every access. A file that is
    replaced (as saving does) is neither: the map keeps the old one.

    Attributes:
        bytes: Its content.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._descriptor)
        self._stamp = _stamp(os.fstat(self._descriptor))
        try:
            self.bytes = mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # a folder; an empty file
            raise self.error(f"it cannot be read ({error})") from error

    def check_unchanged(self) -> None:
        """Raises `LossFileError` if the file was written since it was opened."""
        if _stamp(os.fstat(self._descriptor)) != self._stamp:
            raise self.error("it was changed on disk after it was opened; load it again")

    def check_still_at(self, path: Path) -> None:
        """Raises `LossFileError` unless `path` still names the mapped file."""
        if _stamp(path.stat()) != self._stamp:
            raise self.error("it was replaced while it was being opened; load it again")

    def error(self, reason: str) -> LossFileError:
        """Returns an error that names the file and says why it cannot be used."""
        return LossFileError(f"The loss file {str(self._path)!r} cannot be used: {reason}.")


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class MappedRows(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of a mapped file: brackets read rows, arithmetic and `np.asarray` read all.

    Attributes:
        shape: Number of rows, then the shape of one.
        dtype: The type of a number.
        verified: Which blocks of rows were read and found intact.
    """

    def __init__(
        self,
        file: MappedFile,
        name: str,
        *,
        array: npt.NDArray[Any],
        crcs: npt.NDArray[np.uint32],
        is_finite: bool,
    ) -> None:
        self.shape: tuple[int, ...] = array.shape
        self.dtype = array.dtype
        self.verified = np.zeros(len(crcs), dtype=bool)
        self._file = file
        self._name = name
        self._array = array
        self._crcs = crcs
        self._is_finite = is_finite
        self._block_rows = block_rows_of(array.shape, array.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: int | slice | npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
        rows = np.arange(len(self))[index] if isinstance(index, slice) else np.asarray(index)
        if rows.dtype.kind not in "iu":
            raise IndexError("rows are chosen by an integer, a slice or an array of integers")
        self._file.check_unchanged()
        values = self._array.take(rows, axis=0)  # a copy: it outlives the map
        self._verify(np.unique(rows % len(self) // self._block_rows))
        return values

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("rows of a loss file cannot be had without a copy")
        return self[:].astype(self.dtype if dtype is None else dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        arrays = (np.asarray(x) if isinstance(x, MappedRows) else x for x in inputs)
        return getattr(ufunc, method)(*arrays, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return np.asarray, (self[:],)  # a worker elsewhere may not have the file

    def _verify(self, blocks: npt.NDArray[np.integer[Any]]) -> None:
        for block in blocks[~self.verified[blocks]]:
            start = block * self._block_rows
            rows = self._array[start : start + self._block_rows]
            if zlib.crc32(rows.data) != self._crcs[block]:
                raise self._error(start, len(rows), "are damaged")
            if self._is_finite and not np.isfinite(rows).all():
                raise self._error(start, len(rows), "are not finite")
            self.verified[block] = True

    def _error(self, start: int, n_rows: int, what: str) -> LossFileError:
        return self._file.error(f"rows {start} to {start + n_rows - 1} of {self._name!r} {what}")
