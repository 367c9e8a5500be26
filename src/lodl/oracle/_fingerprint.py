"""Fingerprints: does a store belong to this problem, these labels, this sampler?"""

import copyreg
import functools
import hashlib
import sys
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl.errors import InvalidInputError
from lodl.oracle._globals import FIXED, globals_of, is_installed

_LruCache = type(functools.lru_cache(len))


def fingerprint(thing: object) -> str:
    """Returns a digest that is the same in every process, and the same for equal values.

    - Arrays and tensors count by dtype, shape and bytes; numbers, strings, lists, dicts and sets by
      content.
    - Functions count by name, code, defaults, what they enclose, and the functions, classes, arrays
      and constants they read of their own module, and these in turn: an edited one differs, but not
      for its docstring or comments. (Code differs between minor versions of Python, too.) Not seen
      is what they reach through a module (`settings.PRICE`, `mysolver.solve`) or through another
      object among the globals of theirs.
    - Classes count by name, methods, public attributes and private constants and arrays; those of
      Python, of installed packages and of this one by name alone, so that an upgrade is not seen.
    - Other objects count by their class and by what `pickle` would save of them: a `__getstate__`
      that leaves out a cache or a solver's handle leaves it out here.

    Raises:
        InvalidInputError: Something inside can neither be pickled nor has a name.
    """
    return hashlib.sha256(_encode(thing, _Walk())).hexdigest()[:32]


@dataclass(frozen=True)
class _Walk:
    """Where the encoding is.

    Attributes:
        inside: Ids of what a value is inside of, so that a cycle ends.
        met: Ids of functions and classes met as globals: each is encoded once, so that a module
            of functions that call each other takes no longer than it is long.
    """

    inside: tuple[int, ...] = ()
    met: set[int] = field(default_factory=set)


def _encode(thing: Any, walk: _Walk) -> bytes:
    if id(thing) in walk.inside:
        return b"cycle"
    return _encode_value(thing, replace(walk, inside=(*walk.inside, id(thing))))


def _join(kind: str, parts: Iterable[bytes | memoryview]) -> bytes:
    digest = hashlib.sha256(kind.encode())
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.digest()


@functools.singledispatch
def _encode_value(thing: Any, walk: _Walk) -> bytes:
    """Encodes any object: class and state, or whatever else `pickle` would save."""
    torch: Any = sys.modules.get("torch")  # not imported: without it there are no tensors
    if torch is not None and isinstance(thing, torch.Tensor):
        return _encode_tensor(thing, torch.uint8, walk)
    try:
        reduced = thing.__reduce_ex__(4)
    except Exception as error:
        raise InvalidInputError(
            f"A {type(thing).__module__}.{type(thing).__qualname__} has no content that can be "
            f"compared ({error}), so a store cannot be told to belong to it. Leave it out of the "
            "`__getstate__` of the object that holds it, and make it anew in `__setstate__`."
        ) from error
    if isinstance(reduced, str):  # the name of a global
        return _join("named", [reduced.encode(), _encode(getattr(thing, "__dict__", None), walk)])
    make, arguments, state, *items = (*reduced, None, None, None)[:5]
    if make is copyreg.__newobj__ and len(arguments) == 1:  # type: ignore[attr-defined]
        return _join("object", [_encode(type(thing), walk), _encode(state, walk)])
    content = [None if item is None else list(item) for item in items]
    parts = [type(thing), make, arguments, state, content]
    return _join("reduced", [_encode(part, walk) for part in parts])


def _encode_tensor(thing: Any, byte: Any, walk: _Walk) -> bytes:
    """Encodes a tensor by its bytes: what `pickle` saves of one holds its address."""
    content = thing.detach().cpu().contiguous().reshape(-1).view(byte).numpy()
    parts = [str(thing.dtype), tuple(thing.shape), thing.requires_grad, content]
    return _join("tensor", [_encode(part, walk) for part in parts])


def _with_attributes(thing: Any, content: bytes, walk: _Walk) -> bytes:
    """Adds what an object of a subclass of a plain type has besides its content."""
    state = thing.__getstate__()
    if state is None:
        return content
    return _join("subclass", [content, _encode(type(thing), walk), _encode(state, walk)])


@_encode_value.register(type(None))
@_encode_value.register(bool)
@_encode_value.register(int)
@_encode_value.register(float)
@_encode_value.register(complex)
@_encode_value.register(str)
@_encode_value.register(bytes)
def _(thing: Any, _walk: _Walk) -> bytes:
    return _join(type(thing).__name__, [repr(thing).encode()])


@_encode_value.register
def _(thing: np.generic, walk: _Walk) -> bytes:
    plain = thing.item()
    is_plain = thing.dtype.kind not in "MmV" and not isinstance(plain, np.generic)
    return _encode_value(plain if is_plain else np.asarray(thing), walk)


@_encode_value.register(np.ndarray)
def _(thing: npt.NDArray[Any], walk: _Walk) -> bytes:
    dtype = repr(thing.dtype.descr) if thing.dtype.names else thing.dtype.str
    content: bytes | memoryview
    if thing.dtype.hasobject:
        content = _encode(thing.tolist(), walk)
    else:
        content = np.ascontiguousarray(thing).reshape(-1).view(np.uint8).data  # no copy
    array = _join("array", [dtype.encode(), repr(thing.shape).encode(), content])
    return _with_attributes(thing, array, walk)


@_encode_value.register(list)
@_encode_value.register(tuple)
@_encode_value.register(range)
def _(thing: Iterable[Any], walk: _Walk) -> bytes:
    content = _join("sequence", [_encode(item, walk) for item in thing])
    return _with_attributes(thing, content, walk)


@_encode_value.register(set)
@_encode_value.register(frozenset)
def _(thing: Iterable[Any], walk: _Walk) -> bytes:
    content = _join("set", sorted(_encode(item, walk) for item in thing))
    return _with_attributes(thing, content, walk)


@_encode_value.register(Mapping)
def _(thing: Mapping[Any, Any], walk: _Walk) -> bytes:
    content = _join("mapping", sorted(_encode([k, v], walk) for k, v in thing.items()))
    return _with_attributes(thing, content, walk)


@_encode_value.register
def _(thing: types.FunctionType, walk: _Walk) -> bytes:
    enclosed = [cell.cell_contents for cell in thing.__closure__ or ()]
    code = _without_docstring(thing)
    parts = [thing.__qualname__, code, thing.__defaults__, thing.__kwdefaults__, enclosed]
    encoded = [_encode(part, walk) for part in parts]
    for name, value in globals_of(thing).items():
        encoded += [name.encode(), _encode_global(value, walk)]
    return _join("function", encoded)


def _without_docstring(function: types.FunctionType) -> types.CodeType:
    code = function.__code__
    if function.__doc__ is None or code.co_consts[:1] != (function.__doc__,):
        return code
    return code.replace(co_consts=(None, *code.co_consts[1:]))


def _encode_global(value: Any, walk: _Walk) -> bytes:
    if isinstance(value, type | types.FunctionType):
        if id(value) in walk.met:
            return value.__qualname__.encode()
        walk.met.add(id(value))
    return _encode(value, walk)


@_encode_value.register
def _(thing: types.CodeType, walk: _Walk) -> bytes:
    return _join("code", [_encode([thing.co_code, thing.co_names, thing.co_consts], walk)])


@_encode_value.register
def _(thing: types.MethodType, walk: _Walk) -> bytes:
    return _join("method", [_encode(thing.__func__, walk), _encode(thing.__self__, walk)])


@_encode_value.register(staticmethod)
@_encode_value.register(classmethod)
def _(thing: Any, walk: _Walk) -> bytes:
    return _encode(thing.__func__, walk)


@_encode_value.register
def _(thing: property, walk: _Walk) -> bytes:
    return _join("property", [_encode([thing.fget], walk)])


@_encode_value.register
def _(thing: functools.cached_property, walk: _Walk) -> bytes:  # type: ignore[type-arg]
    return _join("property", [_encode([thing.func], walk)])


@_encode_value.register(_LruCache)
def _(thing: Any, walk: _Walk) -> bytes:
    return _encode(thing.__wrapped__, walk)


@_encode_value.register(types.MemberDescriptorType)  # a slot
@_encode_value.register(types.GetSetDescriptorType)
def _(thing: Any, _walk: _Walk) -> bytes:
    return _join("descriptor", [thing.__qualname__.encode()])


@_encode_value.register
def _(thing: types.BuiltinFunctionType, walk: _Walk) -> bytes:
    owner = thing.__self__
    if isinstance(owner, types.ModuleType | type(None)):
        return _join("builtin", [f"{thing.__module__}.{thing.__qualname__}".encode()])
    return _join("builtin", [thing.__qualname__.encode(), _encode(owner, walk)])


@_encode_value.register
def _(thing: types.ModuleType, _walk: _Walk) -> bytes:
    return _join("module", [thing.__name__.encode()])


@_encode_value.register
def _(thing: functools.partial, walk: _Walk) -> bytes:  # type: ignore[type-arg]
    return _join("partial", [_encode([thing.func, thing.args, thing.keywords], walk)])


@_encode_value.register(type)
def _(thing: type, walk: _Walk) -> bytes:
    """Encodes a class: its name and, unless it is installed, its methods and public attributes."""
    parts = [thing.__qualname__.encode()]
    for owner in thing.__mro__:
        if is_installed(owner.__module__):
            if owner.__module__.partition(".")[0] not in ("builtins", "abc", "lodl"):
                parts.append(f"{owner.__module__}.{owner.__qualname__}".encode())
            continue
        for name, member in sorted(vars(owner).items()):
            if _belongs_to_class(name, member):
                parts += [name.encode(), _encode(member, walk)]
    return _join("class", parts)


def _belongs_to_class(name: str, member: Any) -> bool:
    """Tells what of a class counts: not what Python notes down there, nor a private cache."""
    if isinstance(member, _CODE) or not name.startswith("_"):
        return True
    is_pythons_own = name.startswith("__") and name.endswith("__")
    return not is_pythons_own and isinstance(member, FIXED)


_CODE = (
    types.FunctionType,
    staticmethod,
    classmethod,
    property,
    functools.cached_property,
    _LruCache,
)
