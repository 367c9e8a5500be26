"""Work that depends on features and labels only, done once for all losses of the same instances."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from lodl._arrays import take_rows
from lodl.training._features import count_rows, same_features

T = TypeVar("T")
AnyArray = npt.NDArray[Any]

_N_KEPT = 16  # more than the regressor has folds


class Remembered(Generic[T]):
    """Results for the features, and the arrays that belong to them, of the last few calls."""

    def __init__(self) -> None:
        self._known: list[tuple[Any, list[AnyArray], T]] = []

    def get(self, x: Any, arrays: Sequence[AnyArray], make: Callable[[], T]) -> T:
        """Return what was made for these features and arrays, or make it."""
        for known_x, known, result in self._known:
            is_same = len(known) == len(arrays) and all(map(np.array_equal, known, arrays))
            if is_same and same_features(known_x, x):
                return result
        return self.put(x, arrays, make())

    def put(self, x: Any, arrays: Sequence[AnyArray], result: T) -> T:
        """Remember a result, instead of an earlier one for the same, and return it."""
        copy = take_rows(x, np.arange(count_rows(x)))
        self._known.insert(0, (copy, [array.copy() for array in arrays], result))
        del self._known[_N_KEPT:]
        return result
