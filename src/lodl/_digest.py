"""Digests of values and texts of parameters: equal content gives equal ones in every process."""

import hashlib
import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cached_property, partial, singledispatch
from numbers import Number
from types import MemberDescriptorType
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl.errors import InvalidInputError

_Plain = bool | int | float | complex | str | bytes | date | time | timedelta | Decimal | Enum
_SECRET = re.compile(r"key|token|secret|passw|licen|credential", re.IGNORECASE)
_MAX_LENGTH = 80  # characters of a parameter's text; a longer one becomes a digest


def digest(value: object) -> str:
    """Return a digest of a value: 32 hexadecimal digits.

    A value is made of numbers, strings, dates, arrays, sparse arrays, tensors, lists, tuples, sets,
    dicts and dataclasses. Arrays count by dtype, shape and bytes, dataclasses by class name and
    fields, except fields with `compare=False`. Other objects are an `InvalidInputError`.
    """
    try:
        return hashlib.sha256(_encode(value)).hexdigest()[:32]
    except RecursionError as error:
        raise InvalidInputError("A context must not contain itself.") from error


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
        content = {f.name: getattr(value, f.name) for f in fields(value) if f.compare}
        return _join("object", [_class(value), _encode(content or None)])
    raise InvalidInputError(
        f"A {type(value).__module__}.{type(value).__qualname__} has no content that can be "
        "compared. Is it part of a context? Use numbers, strings, arrays, lists, dicts or "
        "dataclasses, or name the instances: `keys=`."
    )


@_encode.register(_Plain | None)
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
    parts = [dtype.encode(), repr(value.shape).encode(), content]
    return _with_attributes(value, _join("array", parts))


@_encode.register(list | tuple | range)
def _(value: Iterable[Any]) -> bytes:
    return _with_attributes(value, _join("sequence", map(_encode, value)))


@_encode.register(set | frozenset)
def _(value: Iterable[Any]) -> bytes:
    return _with_attributes(value, _join("set", sorted(map(_encode, value))))


@_encode.register(Mapping)
def _(value: Mapping[Any, Any]) -> bytes:
    if _is_sparse(value):  # SciPy's dictionary of keys
        return _encode_sparse(value)
    items = sorted(_encode([key, item]) for key, item in value.items())
    return _with_attributes(value, _join("mapping", items))


def _join(kind: str, parts: Iterable[bytes | memoryview]) -> bytes:
    total = hashlib.sha256(kind.encode())
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.digest()


def _is_sparse(value: Any) -> bool:
    return type(value).__module__.startswith("scipy.sparse") and hasattr(value, "tocoo")


def _encode_sparse(value: Any) -> bytes:
    """Encode a SciPy sparse array by its arrays: its other attributes change at first use."""
    plain = value if value.format in ("csr", "csc", "bsr", "dia", "coo") else value.tocoo()
    names = ("data", "indices", "indptr", "offsets", "row", "col", "coords")
    parts = [getattr(plain, name, None) for name in names]
    return _join("sparse", map(_encode, (value.format, value.shape, *parts)))


def _class(value: Any) -> bytes:
    return _join("class", [type(value).__qualname__.encode()])


def _with_attributes(value: Any, content: bytes) -> bytes:
    """Add the attributes that an object of a subclass of a plain type has besides its content."""
    of_class, attributes = type(value), getattr(value, "__dict__", {})
    is_own = {n: not isinstance(getattr(of_class, n, None), cached_property) for n in attributes}
    own = {name: attribute for name, attribute in attributes.items() if is_own[name]}
    return _join("subclass", [content, _class(value), _encode(own)]) if own else content


def problem_parameters(problem: object) -> dict[str, str]:
    """Return the class name of a problem and its constructor parameters as texts.

    A parameter is an argument of `__init__` that is an attribute, by the same name or with a
    leading underscore. Only plain values are included: numbers, strings, None, lists and tuples of
    these, arrays (by their digest), and the arguments bound by `functools.partial`. The texts are
    stored, so names that suggest a secret are left out, and dataclass fields with `compare=False`.
    """
    names: set[str] = set()
    for kind in type(problem).__mro__[:-1]:
        if "__init__" in vars(kind):
            names.update(list(inspect.signature(vars(kind)["__init__"]).parameters)[1:])
    if is_dataclass(problem):
        names -= {field.name for field in fields(problem) if not field.compare}
    given = sorted(name for name in names if not _SECRET.search(name))
    texts = {name: _text_of(_attribute(problem, name)) for name in given}
    known = {name: text for name, text in texts.items() if text is not None}
    return {"class": type(problem).__name__, **known}


def _attribute(problem: object, name: str) -> Any:
    """Return the value of a constructor argument, or an object if it is not an attribute."""
    for attribute in (name, f"_{name}"):
        if attribute in vars(problem):
            return vars(problem)[attribute]
        if isinstance(inspect.getattr_static(problem, attribute, None), MemberDescriptorType):
            return getattr(problem, attribute, object())  # a slot
    return object()


def _text_of(value: Any) -> str | None:
    """Return a plain value as a short text, or None for another object."""
    value = getattr(value, "function", value)  # one that the library wraps
    if isinstance(value, partial):
        value = [*value.args, *sorted(value.keywords.items())]
    if isinstance(value, np.ndarray) or _is_sparse(value):
        with suppress(InvalidInputError):  # an array of objects that cannot be compared
            return digest(value)
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 2.0 is the same parameter as 2
    if isinstance(value, list | tuple):
        texts = [_text_of(item) for item in value]
        text = None if None in texts else f"[{', '.join(map(str, texts))}]"
    else:
        text = repr(value) if value is None or isinstance(value, str | Number) else None
    return text if text is None or len(text) <= _MAX_LENGTH else digest(text)
