"""A file of row arrays: read a row at a time, never wrong in silence.

The file is safetensors: a header of JSON, then the arrays. Beside each array `name` stands
`crc32.name`, a CRC-32 per block of rows, and at the end `digest`, the SHA-256 of the header and of
all CRCs. Opening reads the header, the CRCs and the digest; a block of rows is checked when the
first of its rows is read. So neither opening nor a mini-batch reads the whole file, and a damaged
byte is an error as soon as it could matter.
"""

import hashlib
import json
import math
import os
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from lodl.losses._mapped_rows import MappedFile, MappedRows, block_rows_of
from lodl.losses._rows import Rows, row_blocks

_FORMAT = {"format": "lodl loss", "version": "1"}
_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
    "F32": np.dtype("<f4"),
    "U32": np.dtype("<u4"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
}
_CODES: dict[np.dtype[Any], str] = {dtype: code for code, dtype in _DTYPES.items()}
_CRC = "crc32."
_DIGEST = "digest"
_MAY_BE_NAN = "errors."
_MAX_NDIM = 64  # NumPy's

_Shape: TypeAlias = tuple[np.dtype[Any], tuple[int, ...]]


@dataclass(frozen=True)
class _Entry:
    """An array in the file; `offset` counts from the end of the header."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int

    @property
    def end(self) -> int:
        return self.offset + self.dtype.itemsize * math.prod(self.shape)


@dataclass(frozen=True)
class _Header:
    """The first bytes of the file, and what they say."""

    raw: bytes
    metadata: Mapping[str, str]
    entries: Mapping[str, _Entry]

    @property
    def names(self) -> list[str]:
        """Names of the arrays, in the order of the file, without the checksums."""
        return [name for name in self.entries if name != _DIGEST and not name.startswith(_CRC)]

    def position(self, name: str) -> int:
        return len(self.raw) + self.entries[name].offset

    def digest(self, crcs: Mapping[str, npt.NDArray[np.uint32]]) -> bytes:
        digest = hashlib.sha256(self.raw)
        for name in self.names:
            digest.update(crcs[name].tobytes())
        return digest.digest()


def write_rows(path: Path, arrays: Mapping[str, Rows], metadata: Mapping[str, str]) -> None:
    """Writes arrays and metadata in one step: a reader sees the old file or the new, never half."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            _write(file, arrays, _lay_out(arrays, metadata))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _lay_out(arrays: Mapping[str, Rows], metadata: Mapping[str, str]) -> _Header:
    """Returns the header of a file with these arrays, the widest numbers first: all aligned."""
    shapes = {name: (rows.dtype.newbyteorder("<"), rows.shape) for name, rows in arrays.items()}
    shapes |= _checksum_shapes(shapes)
    entries: dict[str, _Entry] = {}
    offset = 0
    for name, (dtype, shape) in sorted(shapes.items(), key=lambda item: -item[1][0].itemsize):
        entries[name] = _Entry(dtype, shape, offset)
        offset = entries[name].end
    fields: dict[str, Any] = {"__metadata__": {**_FORMAT, **metadata}}
    for name, entry in entries.items():
        fields[name] = {
            "dtype": _CODES[entry.dtype],
            "shape": entry.shape,
            "data_offsets": (entry.offset, entry.end),
        }
    text = json.dumps(fields, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return _Header(len(text).to_bytes(8, "little") + text, fields["__metadata__"], entries)


def _checksum_shapes(shapes: Mapping[str, _Shape]) -> dict[str, _Shape]:
    """Returns what stands beside the arrays: one CRC per block of each, and the digest."""
    wanted: dict[str, _Shape] = {_DIGEST: (_DTYPES["U8"], (hashlib.sha256().digest_size,))}
    for name, (dtype, shape) in shapes.items():
        n_blocks = math.ceil(shape[0] / block_rows_of(shape, dtype))
        wanted[_CRC + name] = (_DTYPES["U32"], (n_blocks,))
    return wanted


def _write(file: BinaryIO, arrays: Mapping[str, Rows], header: _Header) -> None:
    file.write(header.raw)
    crcs = {}
    for name, rows in arrays.items():
        file.seek(header.position(name))
        crcs[name] = _write_blocks(file, rows, header.entries[name].dtype)
    for name, crc in crcs.items():
        file.seek(header.position(_CRC + name))
        file.write(crc.tobytes())
    file.seek(header.position(_DIGEST))
    file.write(header.digest(crcs))


def _write_blocks(file: BinaryIO, rows: Rows, dtype: np.dtype[Any]) -> npt.NDArray[np.uint32]:
    """Writes the rows and returns the CRC of each block."""
    crcs = []
    for block in row_blocks(len(rows), block_rows_of(rows.shape, dtype)):
        data = np.ascontiguousarray(rows[block], dtype=dtype).tobytes()
        file.write(data)
        crcs.append(zlib.crc32(data))
    return np.array(crcs, dtype="<u4")


def open_rows(path: Path) -> tuple[Mapping[str, str], dict[str, MappedRows]]:
    """Returns the metadata and the arrays of a file, all checked but the rows themselves.

    Raises:
        LossFileError: It is no loss file, of another version, or damaged.
        FileNotFoundError: There is no such file.
    """
    file = MappedFile(path)
    try:
        with safe_open(path, framework="numpy"):
            pass  # the library checks the header: lengths, types, shapes, offsets
    except (SafetensorError, OSError) as error:
        raise file.error(f"it is no intact safetensors file ({error})") from error
    file.check_still_at(path)
    header = _read_header(file)
    crcs = {name: _array(file, header, _CRC + name).copy() for name in header.names}
    if header.digest(crcs) != _array(file, header, _DIGEST).tobytes():
        raise file.error("its header or its checksums are damaged")
    return header.metadata, {
        name: MappedRows(
            file,
            name,
            array=_array(file, header, name),
            crcs=crcs[name],
            is_finite=not name.startswith(_MAY_BE_NAN),
        )
        for name in header.names
    }


def _read_header(file: MappedFile) -> _Header:
    length = int.from_bytes(file.bytes[:8], "little")
    raw = file.bytes[: 8 + length]
    fields = json.loads(raw[8:])
    metadata = fields.pop("__metadata__", None) or {}
    if metadata.get("format") != _FORMAT["format"]:
        raise file.error("it was not written by `LearnedLoss.save`")
    if metadata.get("version") != _FORMAT["version"]:
        raise file.error(
            f"it is of format version {metadata.get('version')!r}, this package reads "
            f"{_FORMAT['version']!r}; use the version of the package that wrote it"
        )
    entries = {name: _read_entry(file, name, field) for name, field in fields.items()}
    header = _Header(raw, metadata, entries)
    shapes = {name: (entry.dtype, entry.shape) for name, entry in entries.items()}
    arrays = {name: shapes.pop(name) for name in header.names}
    if shapes != _checksum_shapes(arrays):
        raise file.error("its checksums do not belong to its arrays")
    return header


def _read_entry(file: MappedFile, name: str, field: Mapping[str, Any]) -> _Entry:
    shape = tuple(field["shape"])
    if field["dtype"] not in _DTYPES or not 0 < len(shape) <= _MAX_NDIM or 0 in shape:
        raise file.error(f"{name!r} has type {field['dtype']} and shape {shape}")
    return _Entry(_DTYPES[field["dtype"]], shape, field["data_offsets"][0])


def _array(file: MappedFile, header: _Header, name: str) -> npt.NDArray[Any]:
    entry = header.entries[name]
    return np.ndarray(entry.shape, entry.dtype, buffer=file.bytes, offset=header.position(name))
