"""Digests of values: equal content gives equal digests, in every process."""

import hashlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cached_property, singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl.errors import InvalidInputError


def digest(value: object) -> str:
    """Return a digest of a value: 32 hexadecimal digits.

    A value is made of numbers, strings, dates, arrays, sparse arrays, tensors, lists, tuples, sets,
    dicts and dataclasses. Arrays count by dtype, shape and bytes, dataclasses by class name and
    fields, except fields with `compare=False`.

    Raises:
        InvalidInputError: The value contains another kind of object.
    """
    try:
        return hashlib.sha256(_encode(value)).hexdigest()[:32]
    except RecursionError as error:
        raise InvalidInputError("A context must not contain itself.") from error


def _join(kind: str, parts: Iterable[bytes | memoryview]) -> bytes:
    total = hashlib.sha256(kind.encode())
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.digest()


@singledispatch
def _encode(value: Any) -> bytes:
    """Encode a value of a type not registered below: a tensor, sparse array or dataclass."""
    torch: Any = sys.modules.get("torch")  # without an import of torch there are no tensors
    if torch is not None and isinstance(value, torch.Tensor):
        content = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        parts = [str(value.dtype), tuple(value.shape), value.requires_grad, content]
        return _join("tensor", map(_encode, parts))
    if _is_sparse(value):
        return _encode_sparse(value)
    if is_dataclass(value) and not isinstance(value, type):
        content = {
            field.name: getattr(value, field.name) for field in fields(value) if field.compare
        }
        return _join("object", [_class(value), _encode(content or None)])
    raise InvalidInputError(
        f"A {type(value).__module__}.{type(value).__qualname__} has no content that can be "
        "compared. Is it part of a context? Use numbers, strings, arrays, lists, dicts or "
        "dataclasses, or name the instances: `keys=`."
    )


def _is_sparse(value: Any) -> bool:
    return type(value).__module__.startswith("scipy.sparse") and hasattr(value, "tocoo")


def _encode_sparse(value: Any) -> bytes:
    """Encode a SciPy sparse array by its arrays: its other attributes change at first use."""
    has_arrays = value.format in ("csr", "csc", "bsr", "dia", "coo")
    plain = value if has_arrays else value.tocoo()
    names = ("data", "indices", "indptr", "offsets", "row", "col", "coords")
    parts = [getattr(plain, name, None) for name in names]
    return _join("sparse", map(_encode, (value.format, value.shape, *parts)))


def _class(value: Any) -> bytes:
    return _join("class", [type(value).__qualname__.encode()])


def _with_attributes(value: Any, content: bytes) -> bytes:
    """Add the attributes that an object of a subclass of a plain type has besides its content."""
    own = {
        name: attribute
        for name, attribute in getattr(value, "__dict__", {}).items()
        if not isinstance(getattr(type(value), name, None), cached_property)
    }
    return _join("subclass", [content, _class(value), _encode(own)]) if own else content


@_encode.register(type(None))
@_encode.register(bool)
@_encode.register(int)
@_encode.register(float)
@_encode.register(complex)
@_encode.register(str)
@_encode.register(bytes)
@_encode.register(date)
@_encode.register(time)
@_encode.register(timedelta)
@_encode.register(Decimal)
@_encode.register(Enum)
def _(value: Any) -> bytes:
    return _join(type(value).__name__, [repr(value).encode()])


@_encode.register
def _(value: np.generic) -> bytes:
    plain = value.item()
    is_plain = value.dtype.kind not in "MmV" and not isinstance(plain, np.generic)
    return _encode(plain if is_plain else np.asarray(value))


@_encode.register(np.ndarray)
def _(value: npt.NDArray[Any]) -> bytes:
    dtype = repr(value.dtype.descr) if value.dtype.names else value.dtype.str
    content: bytes | memoryview
    if value.dtype.hasobject:
        content = _encode(value.tolist())
    else:
        content = np.ascontiguousarray(value).reshape(-1).view(np.uint8).data  # no copy
    array = _join("array", [dtype.encode(), repr(value.shape).encode(), content])
    return _with_attributes(value, array)


@_encode.register(list)
@_encode.register(tuple)
@_encode.register(range)
def _(value: Iterable[Any]) -> bytes:
    return _with_attributes(value, _join("sequence", map(_encode, value)))


@_encode.register(set)
@_encode.register(frozenset)
def _(value: Iterable[Any]) -> bytes:
    return _with_attributes(value, _join("set", sorted(map(_encode, value))))


@_encode.register(Mapping)
def _(value: Mapping[Any, Any]) -> bytes:
    if _is_sparse(value):  # SciPy's dictionary of keys
        return _encode_sparse(value)
    items = sorted(_encode([key, item]) for key, item in value.items())
    return _with_attributes(value, _join("mapping", items))
