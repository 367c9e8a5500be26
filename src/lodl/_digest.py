"""Digests of content: the same for equal values, in every process."""

import copyreg
import hashlib
import sys
from collections.abc import Iterable, Mapping
from functools import cached_property, singledispatch
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl.errors import InvalidInputError

_Inside = tuple[int, ...]  # ids of what a value is inside of, so that a cycle ends


def digest(thing: object) -> str:
    """Return a digest of a value: 32 hexadecimal digits.

    Arrays and tensors count by dtype, shape and bytes; numbers, strings, lists, dicts and sets by
    content; other objects by the name of their class and what `pickle` would save of them, less
    their cached properties. Code does not count.

    Raises:
        InvalidInputError: Something inside cannot be pickled.
    """
    return hashlib.sha256(_encode(thing, ())).hexdigest()[:32]


def _encode(thing: Any, inside: _Inside) -> bytes:
    if id(thing) in inside:
        return b"cycle"
    return _encode_value(thing, (*inside, id(thing)))


def _join(kind: str, parts: Iterable[bytes | memoryview]) -> bytes:
    total = hashlib.sha256(kind.encode())
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.digest()


@singledispatch
def _encode_value(thing: Any, inside: _Inside) -> bytes:
    """Encode any object: class and state, or whatever else `pickle` would save."""
    torch: Any = sys.modules.get("torch")  # not imported: without it there are no tensors
    if torch is not None and isinstance(thing, torch.Tensor):
        return _encode_tensor(thing, torch.uint8, inside)
    if type(thing).__module__.startswith("scipy.sparse") and hasattr(thing, "tocoo"):
        return _encode_sparse(thing, inside)
    try:
        reduced = thing.__reduce_ex__(4)
    except Exception as error:
        raise InvalidInputError(
            f"A {type(thing).__module__}.{type(thing).__qualname__} has no content that can be "
            f"compared ({error}). Is it part of a context? Name the instances yourself: `keys=`."
        ) from error
    if isinstance(reduced, str):  # the name of a global
        return _join("named", [reduced.encode(), _encode(getattr(thing, "__dict__", None), inside)])
    make, arguments, state, *items = (*reduced, None, None, None)[:5]
    state = _without_caches(thing, state)
    if make is copyreg.__newobj__ and len(arguments) == 1:  # type: ignore[attr-defined]
        return _join("object", [_encode(type(thing), inside), _encode(state, inside)])
    content = [None if item is None else list(item) for item in items]
    parts = [type(thing), make, arguments, state, content]
    return _join("reduced", [_encode(part, inside) for part in parts])


def _without_caches(thing: Any, state: Any) -> Any:
    """Leave out what a `cached_property` computed: an object is the same before and after."""
    if not isinstance(state, dict):
        return state
    caches = {
        name
        for kind in type(thing).__mro__
        for name, value in vars(kind).items()
        if isinstance(value, cached_property)
    }
    return {name: value for name, value in state.items() if name not in caches} or None


def _encode_sparse(thing: Any, inside: _Inside) -> bytes:
    """Encode a SciPy sparse array by its arrays: it notes facts about itself at first use."""
    has_arrays = thing.format in ("csr", "csc", "bsr", "dia", "coo")
    plain = thing if has_arrays else thing.tocoo()
    names = ("data", "indices", "indptr", "offsets", "row", "col", "coords")
    parts = [getattr(plain, name, None) for name in names]
    return _join("sparse", [_encode(part, inside) for part in (thing.format, thing.shape, *parts)])


def _encode_tensor(thing: Any, byte: Any, inside: _Inside) -> bytes:
    """Encode a tensor by its bytes: what `pickle` saves of one holds its address."""
    content = thing.detach().cpu().contiguous().reshape(-1).view(byte).numpy()
    parts = [str(thing.dtype), tuple(thing.shape), thing.requires_grad, content]
    return _join("tensor", [_encode(part, inside) for part in parts])


def _with_attributes(thing: Any, content: bytes, inside: _Inside) -> bytes:
    """Add what an object of a subclass of a plain type has besides its content."""
    state = _without_caches(thing, thing.__getstate__())
    if state is None:
        return content
    return _join("subclass", [content, _encode(type(thing), inside), _encode(state, inside)])


@_encode_value.register(type(None))
@_encode_value.register(bool)
@_encode_value.register(int)
@_encode_value.register(float)
@_encode_value.register(complex)
@_encode_value.register(str)
@_encode_value.register(bytes)
def _(thing: Any, _inside: _Inside) -> bytes:
    return _join(type(thing).__name__, [repr(thing).encode()])


@_encode_value.register
def _(thing: np.generic, inside: _Inside) -> bytes:
    plain = thing.item()
    is_plain = thing.dtype.kind not in "MmV" and not isinstance(plain, np.generic)
    return _encode_value(plain if is_plain else np.asarray(thing), inside)


@_encode_value.register(np.ndarray)
def _(thing: npt.NDArray[Any], inside: _Inside) -> bytes:
    dtype = repr(thing.dtype.descr) if thing.dtype.names else thing.dtype.str
    content: bytes | memoryview
    if thing.dtype.hasobject:
        content = _encode(thing.tolist(), inside)
    else:
        content = np.ascontiguousarray(thing).reshape(-1).view(np.uint8).data  # no copy
    array = _join("array", [dtype.encode(), repr(thing.shape).encode(), content])
    return _with_attributes(thing, array, inside)


@_encode_value.register(list)
@_encode_value.register(tuple)
@_encode_value.register(range)
def _(thing: Iterable[Any], inside: _Inside) -> bytes:
    content = _join("sequence", [_encode(item, inside) for item in thing])
    return _with_attributes(thing, content, inside)


@_encode_value.register(set)
@_encode_value.register(frozenset)
def _(thing: Iterable[Any], inside: _Inside) -> bytes:
    content = _join("set", sorted(_encode(item, inside) for item in thing))
    return _with_attributes(thing, content, inside)


@_encode_value.register(Mapping)
def _(thing: Mapping[Any, Any], inside: _Inside) -> bytes:
    content = _join("mapping", sorted(_encode([k, v], inside) for k, v in thing.items()))
    return _with_attributes(thing, content, inside)


@_encode_value.register(FunctionType)
def _(thing: FunctionType, _inside: _Inside) -> bytes:
    if "<" in thing.__qualname__:  # a lambda, or inside another function: others share the name
        raise InvalidInputError(
            f"The function {thing.__qualname__} has no content that can be compared. Is it part of "
            "a context? Name the instances yourself: `keys=`."
        )
    return _join("function", [thing.__module__.encode(), thing.__qualname__.encode()])


@_encode_value.register(type)
def _(thing: type, _inside: _Inside) -> bytes:
    return _join("class", [thing.__qualname__.encode()])
