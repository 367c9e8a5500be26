"""Fingerprints: does a store belong to this problem, these labels, this sampler?"""

import functools
import hashlib
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


def fingerprint(thing: object) -> str:
    """Returns a digest that is the same in every process, and the same for equal values.

    - Arrays count by dtype, shape and bytes; numbers, strings, lists, dicts and sets by content.
    - Functions count by name, code, defaults and what they enclose: an edited function differs.
      (Code differs between minor versions of Python, too.)
    - Other objects count by their class (its name, and its methods and public attributes unless it
      is of this package) and their state, the one that `pickle` would save: a `__getstate__` that
      leaves out a cache or a solver's handle leaves it out here.
    - What has no state that can be asked for counts by its type's name alone.
    """
    return hashlib.sha256(_encode(thing, ())).hexdigest()[:32]


_Path = tuple[int, ...]  # ids of what a value is inside of, so that a cycle ends


def _encode(thing: Any, path: _Path) -> bytes:
    if id(thing) in path:
        return b"cycle"
    return _encode_value(thing, (*path, id(thing)))


def _join(kind: str, parts: Iterable[bytes | memoryview]) -> bytes:
    digest = hashlib.sha256(kind.encode())
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.digest()


@functools.singledispatch
def _encode_value(thing: Any, path: _Path) -> bytes:
    """Encodes any object: class and state."""
    try:
        state = thing.__getstate__()
    except Exception:  # noqa: BLE001 - a handle, a lock: it has no state to ask for
        state = None
    return _join("object", [_encode(type(thing), path), _encode(state, path)])


@_encode_value.register(type(None))
@_encode_value.register(bool)
@_encode_value.register(int)
@_encode_value.register(float)
@_encode_value.register(complex)
@_encode_value.register(str)
@_encode_value.register(bytes)
def _(thing: Any, _path: _Path) -> bytes:
    return _join(type(thing).__name__, [repr(thing).encode()])


@_encode_value.register
def _(thing: np.generic, path: _Path) -> bytes:
    return _encode_value(np.asarray(thing) if thing.dtype.names else thing.item(), path)


@_encode_value.register(np.ndarray)
def _(thing: npt.NDArray[Any], path: _Path) -> bytes:
    content: bytes | memoryview
    if thing.dtype.hasobject:
        content = _encode(thing.tolist(), path)
    else:
        content = np.ascontiguousarray(thing).reshape(-1).view(np.uint8).data  # no copy
    return _join("array", [thing.dtype.str.encode(), repr(thing.shape).encode(), content])


@_encode_value.register(list)
@_encode_value.register(tuple)
@_encode_value.register(range)
def _(thing: Iterable[Any], path: _Path) -> bytes:
    return _join("sequence", [_encode(item, path) for item in thing])


@_encode_value.register(set)
@_encode_value.register(frozenset)
def _(thing: Iterable[Any], path: _Path) -> bytes:
    return _join("set", sorted(_encode(item, path) for item in thing))


@_encode_value.register(Mapping)
def _(thing: Mapping[Any, Any], path: _Path) -> bytes:
    return _join("mapping", sorted(_encode([k, v], path) for k, v in thing.items()))


@_encode_value.register
def _(thing: types.FunctionType, path: _Path) -> bytes:
    enclosed = [cell.cell_contents for cell in thing.__closure__ or ()]
    parts = [thing.__qualname__, thing.__code__, thing.__defaults__, thing.__kwdefaults__, enclosed]
    return _join("function", [_encode(part, path) for part in parts])


@_encode_value.register
def _(thing: types.CodeType, path: _Path) -> bytes:
    return _join("code", [_encode([thing.co_code, thing.co_names, thing.co_consts], path)])


@_encode_value.register
def _(thing: types.MethodType, path: _Path) -> bytes:
    return _join("method", [_encode(thing.__func__, path), _encode(thing.__self__, path)])


@_encode_value.register(staticmethod)
@_encode_value.register(classmethod)
def _(thing: Any, path: _Path) -> bytes:
    return _encode(thing.__func__, path)


@_encode_value.register
def _(thing: property, path: _Path) -> bytes:
    return _join("property", [_encode([thing.fget], path)])


@_encode_value.register
def _(thing: types.BuiltinFunctionType, _path: _Path) -> bytes:
    return _join("builtin", [f"{thing.__module__}.{thing.__qualname__}".encode()])


@_encode_value.register
def _(thing: types.ModuleType, _path: _Path) -> bytes:
    return _join("module", [thing.__name__.encode()])


@_encode_value.register
def _(thing: functools.partial, path: _Path) -> bytes:  # type: ignore[type-arg]
    return _join("partial", [_encode([thing.func, thing.args, thing.keywords], path)])


@_encode_value.register(type)
def _(thing: type, path: _Path) -> bytes:
    """Encodes a class: its name and, unless it is ours, its methods and public attributes."""
    parts = [thing.__qualname__.encode()]
    for owner in thing.__mro__:
        if owner.__module__.partition(".")[0] in ("builtins", "abc", "lodl"):
            continue
        for name, member in sorted(vars(owner).items()):
            if isinstance(member, _CODE) or not name.startswith("_"):
                parts += [name.encode(), _encode(member, path)]
    return _join("class", parts)


_CODE = (types.FunctionType, staticmethod, classmethod, property)
