"""Functions that NumPy arrays and torch tensors spell differently.

Everything else in a formula is written with operators and methods that both have.
"""

from typing import Any

import numpy as np


def largest(x: Any, axis: int = -1) -> Any:
    """Return the largest values along an axis; torch shares the gradient among ties."""
    return x.max(axis) if isinstance(x, np.ndarray) else x.amax(axis)


def exp(x: Any) -> Any:
    """Return e to the power of each value."""
    return np.exp(x) if isinstance(x, np.ndarray) else x.exp()


def log(x: Any) -> Any:
    """Return the natural logarithm of each value."""
    return np.log(x) if isinstance(x, np.ndarray) else x.log()
