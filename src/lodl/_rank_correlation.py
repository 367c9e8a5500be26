"""Spearman's rank correlation."""

import numpy as np

from lodl._typing import Array


def rank_correlation(a: Array, b: Array) -> float:
    """Return Spearman's correlation of two arrays (n,); NaN if one of them is constant or empty."""
    if not len(a) or np.ptp(a) == 0 or np.ptp(b) == 0:
        return np.nan
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: Array) -> Array:
    """Return ranks; equal values share the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2)[place])
