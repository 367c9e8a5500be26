"""Digests of the data of a task, by which a row knows what it was computed on."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from lodl._digest import digest
from lodl.domains import Domain


@cache
def fingerprint(build: Callable[[int], Domain], seed: int) -> str:
    """Return a digest of everything in a domain: other parameters or prices make other rows."""
    domain = build(seed)
    splits = domain.splits
    parts = [
        [_on_grid(values) for values in (part.x, part.y, part.context)]
        for part in (splits.train, splits.validation, splits.test)
    ]
    return digest([domain.problem, repr(domain.model), parts])[:16]


def _on_grid(values: Any) -> Any:
    """Return an array as whole numbers of 2^-12 of its largest entry, anything else as it is.

    The last digits of generated data depend on the CPU; the digest must not, or rows that were
    computed on another one would be computed again.
    """
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return values
    _, exponent = np.frexp(np.abs(values).max(initial=0.0))
    return np.rint(np.ldexp(values, 12 - exponent)).astype(np.int64)
