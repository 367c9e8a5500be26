"""What a function reads of its module, for its fingerprint."""

import dis
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

FIXED = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    tuple,
    frozenset,
    np.ndarray,
    np.generic,
)
"""What is data where it has a name: containers that grow may be caches."""

_CONSTANTS = (*FIXED, list, set, Mapping)


def globals_of(function: types.FunctionType) -> dict[str, Any]:
    """Returns the functions, classes, arrays and constants that a function reads of its module.

    Left out: what comes from installed packages, modules, other objects, and what the function
    itself assigns (a counter).
    """
    if is_installed(function.__module__):
        return {}
    read, assigned = set(), set()
    for instruction in _instructions(function.__code__):
        if instruction.opname == "LOAD_GLOBAL":
            read.add(instruction.argval)
        elif instruction.opname == "STORE_GLOBAL":
            assigned.add(instruction.argval)
    found = function.__globals__
    return {
        name: found[name]
        for name in sorted(read - assigned)
        if name in found and _counts(found[name])
    }


def is_installed(module: str | None) -> bool:
    """Tells whether a module is of Python, of an installed package or of this one."""
    root = (module or "").partition(".")[0]
    if root in sys.stdlib_module_names or root == "lodl":
        return True
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    return file is not None and not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


def _counts(value: Any) -> bool:
    if isinstance(value, type | types.FunctionType):
        return not is_installed(value.__module__)
    return isinstance(value, _CONSTANTS)


def _instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    """Gives the instructions of a function and of the functions inside it."""
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _instructions(constant)
