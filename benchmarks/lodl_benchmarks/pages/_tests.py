"""Paired tests over data seeds, corrected for their number."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import t as student

from lodl._typing import Array
from lodl.report import Cell

_LEVEL = 0.05  # corrected p-value below which a difference is significant


def t_test(mean: float, error: float, n: int) -> float:
    """Return the two-sided p-value of a mean of n values. One value shows nothing: 1."""
    if n < 2 or mean == 0:
        return 1.0
    if error == 0:
        return 0.0
    return float(2 * student.sf(abs(mean) / error, n - 1))


def holm(p_values: Sequence[float]) -> Array:
    """Return p-values corrected for the number of tests (Holm, 1979).

    The k-th smallest of m is multiplied by m - k + 1, and is no smaller than those before it.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(corrected, 1.0)


def verdict_of(difference: float, p: float) -> str:
    """Return whether a regret is better or worse than another, by a corrected p-value."""
    if p >= _LEVEL:
        return "open"
    return "better" if difference < 0 else "worse"


def p_cell(p: float) -> Cell:
    """Return a p-value with three digits."""
    return Cell("< 0.001" if p < 0.001 else f"{p:.3f}", p)
