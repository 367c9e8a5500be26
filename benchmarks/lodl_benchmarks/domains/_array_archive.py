"""Arrays in `.npz` files, which may be damaged."""

import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.lib.npyio import NpzFile

# What NumPy raises for a damaged file. A flipped bit may say "encrypted", which is a RuntimeError,
# and the header of an array is parsed as Python.
UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    RuntimeError,
    SyntaxError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def open_npz(path: Path) -> Iterator[NpzFile]:
    """Open an archive of arrays; a damaged file raises one of `UNREADABLE`."""
    with path.open("rb") as file:  # np.load would leave a torn file open
        arrays = np.load(file, allow_pickle=False)
        if not isinstance(arrays, NpzFile):
            raise ValueError("it is no archive of arrays")
        yield arrays
