"""Read arrays from a pickle without running anything that the pickle names.

A pickle is a program: it may name any function and call it. This reader lets it name only the few
callables in which NumPy writes an array, and answers each name with an inert stand-in from this
file. Whatever the pickle does to a stand-in ends up as its arguments or its state; arrays are made
from them afterwards, from plain bytes of a floating-point type.
"""

import pickle
import struct
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from lodl.errors import DataError

_FLOATS = ("f2", "f4", "f8")


def load_arrays(path: Path) -> list[npt.NDArray[np.floating]]:
    """Read the list of float arrays from a pickle of (list of arrays, anything)."""
    try:
        with path.open("rb") as file:
            loaded = _ArrayUnpickler(file, encoding="latin1").load()
        return [_as_array(item) for item in _list_of(loaded)]
    except DataError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    except (
        *(OSError, EOFError, pickle.UnpicklingError, struct.error, RecursionError, MemoryError),
        *(AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError),
    ) as error:
        raise DataError(f"{path} is not a pickle of NumPy arrays: {error}") from error


class _StandIn:
    """Keeps what a pickle hands to a callable, and does nothing with it."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Reconstructed(_StandIn):
    """An empty array whose state holds version, shape, type, order and bytes."""


class _FromBuffer(_StandIn):
    """An array made of bytes, type, shape and order (pickle protocol 5)."""


class _DType(_StandIn):
    """A data type: its code, and in its state the byte order."""


class _NDArray(_StandIn):
    """The array class itself, an argument of the first."""


class _Latin1(_StandIn):
    """Bytes written as text (pickle protocol 2)."""


class _ArrayUnpickler(pickle.Unpickler):
    _STAND_INS: ClassVar[dict[tuple[str, str], type[_StandIn]]] = {
        ("_codecs", "encode"): _Latin1,
        ("numpy", "dtype"): _DType,
        ("numpy", "ndarray"): _NDArray,
        ("numpy.core.multiarray", "_reconstruct"): _Reconstructed,
        ("numpy._core.multiarray", "_reconstruct"): _Reconstructed,
        ("numpy.core.numeric", "_frombuffer"): _FromBuffer,
        ("numpy._core.numeric", "_frombuffer"): _FromBuffer,
    }

    def find_class(self, module: str, name: str) -> type[_StandIn]:
        try:
            return self._STAND_INS[module, name]
        except KeyError:
            raise DataError(
                f"it names {module}.{name}; only NumPy arrays are allowed. "
                "Save the matrices as .npy where you trust the file."
            ) from None

    def persistent_load(self, pid: Any) -> NoReturn:
        raise DataError(f"it refers to the outside object {pid!r}; only NumPy arrays are allowed.")


def _list_of(loaded: Any) -> list[Any]:
    if isinstance(loaded, tuple) and loaded and isinstance(loaded[0], list):
        return loaded[0]
    raise DataError("it must hold a tuple whose first member is a list of arrays.")


def _as_array(item: Any) -> npt.NDArray[np.floating]:
    """Return the array described by what the pickle handed to its stand-in."""
    match item:
        case _Reconstructed(state=(_, shape, _DType() as dtype, is_fortran, data)):
            order = "F" if is_fortran else "C"
        case _FromBuffer(arguments=(data, _DType() as dtype, shape, str(order))):
            pass
        case _:
            raise DataError(f"the list must hold float arrays only, got {type(item).__name__}.")
    flat = np.frombuffer(_as_bytes(data), dtype=_float_type(dtype))
    return flat.reshape(shape, order="F" if order == "F" else "C")


def _as_bytes(data: Any) -> bytes | bytearray:
    if isinstance(data, _Latin1):
        data = data.arguments[0]
    if isinstance(data, str):  # bytes of protocol 2, by Python 3 or by Python 2
        return data.encode("latin1")
    if isinstance(data, bytes | bytearray):
        return data
    raise DataError(f"an array's content must be bytes, got {type(data).__name__}.")


def _float_type(dtype: _DType) -> np.dtype[np.floating]:
    code, byte_order = dtype.arguments[0], dtype.state[1]
    if code not in _FLOATS or byte_order not in ("<", ">", "="):
        raise DataError(f"arrays must be of floats, got the type {code!r}.")
    float_type: np.dtype[np.floating] = np.dtype(byte_order + code)
    return float_type
