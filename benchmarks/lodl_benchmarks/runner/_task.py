"""Tasks: what every benchmark runs on, and digests of their data."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lodl._digest import digest
from lodl.domains import Domain


@dataclass(frozen=True, eq=False)
class Task:
    """A domain with a title. Each benchmark extends it by its settings.

    Attributes:
        title: What is decided.
        build: Makes the domain of a data seed.
    """

    title: str
    build: Callable[[int], Domain]

    def data(self, seed: int) -> str:
        """Return a digest of the domain of a seed: other parameters or data make other rows."""
        return _digest(self.build, seed)


@cache
def _digest(build: Callable[[int], Domain], seed: int) -> str:
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
