"""Functions that NumPy arrays and torch tensors spell differently, along the last axis.

Everything else in a formula is written with operators and methods that both have.
"""

from typing import Any

import numpy as np


def largest(x: Any) -> Any:
    """Return the largest value; torch shares the gradient among ties."""
    return x.max(-1) if isinstance(x, np.ndarray) else x.amax(-1)


def log_sum_exp(x: Any) -> Any:
    """Return log sum_k exp(x_k), without overflow."""
    if not isinstance(x, np.ndarray):
        return x.logsumexp(-1)
    top = x.max(-1)
    return top + np.log(np.exp(x - top[..., np.newaxis]).sum(-1))


def softmax(x: Any) -> Any:
    """Return exp(x_k) / sum_j exp(x_j), without overflow."""
    if not isinstance(x, np.ndarray):
        return x.softmax(-1)
    powers = np.exp(x - x.max(-1)[..., np.newaxis])
    return powers / powers.sum(-1)[..., np.newaxis]
