"""Two decisions in words, so that a reader sees what changed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_LONGEST = 80  # characters
_FEW = 8  # zeros and ones that are told one by one


def in_words(before: Any, after: Any, names: Sequence[str] | None) -> tuple[str, str]:
    """Return two decisions as text.

    Arrays that have a number for each name are told by name, and only where they differ.

    Args:
        before: The one decision.
        after: The other one.
        names: Names of the numbers in a label, or None.
    """
    if names is None or not (_fits(before, names) and _fits(after, names)):
        return _plain(before), _plain(after)
    old, new = np.ravel(before), np.ravel(after)
    apart = np.flatnonzero(~np.isclose(old, new, rtol=1e-3, atol=1e-6)).tolist()
    return (
        _joined([f"{names[i]} {_number(old[i])}" for i in apart]),
        _joined([f"{names[i]} {_number(new[i])}" for i in apart]),
    )


def _fits(z: Any, names: Sequence[str]) -> bool:
    return isinstance(z, np.ndarray) and z.size == len(names) and z.dtype.kind in "biuf"


def _joined(parts: list[str]) -> str:
    """Return as many parts as there is room for, and how many are left out."""
    n = len(parts)
    while n > 1 and len(", ".join(parts[:n])) > _LONGEST:
        n -= 1
    more = f" and {len(parts) - n} more" if n < len(parts) else ""
    return ", ".join(parts[:n]) + more


def _plain(z: Any) -> str:
    if isinstance(z, Mapping):
        return _shortened(", ".join(f"{name}: {_plain(value)}" for name, value in z.items()))
    if isinstance(z, np.ndarray) and z.dtype.kind in "biuf":
        if z.ndim == 1 and z.size > _FEW and np.isin(z, (0, 1)).all():
            return _shortened("ones at " + ", ".join(map(str, np.flatnonzero(z))))
        rows = z.reshape(-1, z.shape[-1]) if z.ndim else z.reshape(1, 1)
        return _shortened(" / ".join(" ".join(map(_number, row)) for row in rows))
    return _shortened(" ".join(str(z).split()))


def _number(value: Any) -> str:
    return f"{float(value):z.3g}" if abs(value) < 1e4 else f"{float(value):,.0f}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
