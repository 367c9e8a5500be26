"""Text for people: amounts, shortened names, decisions."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_DIGITS = 3  # significant digits of the largest amount
_MAX_DECISION = 80  # characters of a decision
_MAX_VALUES = 8  # zeros and ones that are listed one by one


def amounts(*values: float) -> list[str]:
    """Return numbers as text, all with the same number of decimals.

    The largest has three significant digits, or all digits before its point. Thousands are
    separated.

    Example:
        >>> from lodl.report._text import amounts
        >>> amounts(86.2041, 30.536), amounts(9783.21)
        (['86.2', '30.5'], ['9,783'])
    """
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    n_before_point = math.floor(math.log10(max(sizes))) + 1 if sizes else _DIGITS
    if not -6 < n_before_point < 13:
        return [f"{value:.3g}" for value in values]
    decimals = max(_DIGITS - n_before_point, 0) if sizes else 0
    return [f"{value:z,.{decimals}f}" for value in values]


def shortened(text: str, longest: int = 32) -> str:
    """Return a text of at most `longest` characters, the last an ellipsis if it was cut.

    The default leaves room for the figure that the text labels.
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def coordinate_name(j: int, label_shape: Sequence[int]) -> str:
    """Return the name of a label's j-th number if the user gave none."""
    place = [int(i) for i in np.unravel_index(j, tuple(label_shape))]
    return f"label {place[0] if len(place) == 1 else tuple(place)}"


def decision_texts(before: Any, after: Any, names: Sequence[str] | None) -> tuple[str, str]:
    """Return two decisions as text.

    Arrays with one number per label name are listed by name, differences only.

    Args:
        before: The first decision.
        after: The second decision.
        names: Names of the numbers in a label, if known.
    """
    if names is None or not (_has_names(before, names) and _has_names(after, names)):
        return _decision_text(before), _decision_text(after)
    old, new = np.ravel(before), np.ravel(after)
    differing = np.flatnonzero(~np.isclose(old, new, rtol=1e-3, atol=1e-6)).tolist()
    return (
        _joined([f"{names[i]} {_number(old[i])}" for i in differing]),
        _joined([f"{names[i]} {_number(new[i])}" for i in differing]),
    )


def _has_names(z: Any, names: Sequence[str]) -> bool:
    return isinstance(z, np.ndarray) and z.size == len(names) and z.dtype.kind in "biuf"


def _joined(parts: list[str]) -> str:
    """Return as many parts as fit, and the number of those left out."""
    n = len(parts)
    while n > 1 and len(", ".join(parts[:n])) > _MAX_DECISION:
        n -= 1
    more = f" and {len(parts) - n} more" if n < len(parts) else ""
    return ", ".join(parts[:n]) + more


def _decision_text(z: Any) -> str:
    if isinstance(z, Mapping):
        text = ", ".join(f"{name}: {_decision_text(part)}" for name, part in z.items())
    elif isinstance(z, np.ndarray) and z.dtype.kind in "biuf":
        if z.ndim == 1 and z.size > _MAX_VALUES and np.isin(z, (0, 1)).all():
            text = "ones at " + ", ".join(map(str, np.flatnonzero(z)))
        else:
            rows = z.reshape(-1, z.shape[-1]) if z.ndim else z.reshape(1, 1)
            text = " / ".join(" ".join(map(_number, row)) for row in rows)
    else:
        text = " ".join(str(z).split())
    return shortened(text, _MAX_DECISION)


def _number(value: Any) -> str:
    return f"{float(value):z.3g}" if abs(value) < 1e4 else f"{float(value):,.0f}"
