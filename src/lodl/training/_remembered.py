"""Work that depends on features and labels only, done once for all losses of the same instances."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from lodl._frames import take_rows
from lodl._typing import Array
from lodl.training._features import same_features

T = TypeVar("T")

_N_KEPT = 16  # more than the regressor has folds


class Remembered(Generic[T]):
    """Results for the features and labels of the last few calls."""

    def __init__(self) -> None:
        self._known: list[tuple[Any, Array, T]] = []

    def get(self, x: Any, y: Array, make: Callable[[], T]) -> T:
        """Return what `make` returned for these features and labels, or call it."""
        for known_x, known_y, result in self._known:
            if np.array_equal(known_y, y) and same_features(known_x, x):
                return result
        result = make()
        everything = np.arange(len(y))
        self._known.append((take_rows(x, everything), y[everything], result))  # copies
        del self._known[:-_N_KEPT]
        return result
