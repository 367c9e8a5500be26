"""Features and labels in units of their own spread."""

from dataclasses import dataclass

import numpy as np

from lodl._typing import Array
from lodl.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class Scaling:
    """A centre and a spread, for the last axes of an array."""

    centre: Array
    spread: Array

    @classmethod
    def of_features(cls, x: Array) -> "Scaling":
        """Return the mean and deviation of each feature, over instances and items."""
        axes = tuple(range(x.ndim - 1))
        return cls._of(x.mean(axis=axes), x.std(axis=axes))

    @classmethod
    def of_labels(cls, y: Array, n_items: int | None) -> "Scaling":
        """Return the mean and deviation of each value of a label; items share theirs."""
        if n_items is None:
            return cls._of(y.mean(axis=0), y.std(axis=0))
        rows = y.reshape(len(y) * n_items, -1)
        one = cls._of(rows.mean(axis=0), rows.std(axis=0))
        shape = y.shape[1:]
        return cls(
            np.tile(one.centre, n_items).reshape(shape), np.tile(one.spread, n_items).reshape(shape)
        )

    @classmethod
    def none(cls) -> "Scaling":
        """Return a scaling that changes nothing."""
        return cls(np.zeros(()), np.ones(()))

    @classmethod
    def _of(cls, centre: Array, spread: Array) -> "Scaling":
        return cls(centre, np.where(spread > 1e-12 * (1 + np.abs(centre)), spread, 1.0))

    def scaled(self, values: Array) -> Array:
        """Return values in units of the spread around the centre."""
        return (values - self.centre) / self.spread


def check_features(x: object, n: int | None = None, *, missing: bool = False) -> Array:
    """Return features as an array (n, p) or (n, items, p) of numbers.

    Args:
        x: The features.
        n: The number of instances there should be; any if None.
        missing: Whether NaN may stand for what is missing.
    """
    try:
        array = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"`x` must be an array of numbers: {error}") from error
    if array.ndim < 2 or 0 in array.shape:
        raise InvalidInputError(
            f"`x` must have shape (n, p), or (n, items, p) for a model per item, got {array.shape}."
        )
    if n is not None and len(array) != n:
        raise InvalidInputError(f"`x` must have one row per instance ({n}), got {len(array)}.")
    if not missing and not np.isfinite(array).all():
        raise InvalidInputError("`x` must be finite. Fill or drop missing values first.")
    return array


def count_items(x: Array, y: Array) -> int | None:
    """Return the number of items that one model serves, None where features are joint."""
    if x.ndim < 3:
        return None
    if y[0].size % x.shape[1]:
        raise InvalidInputError(
            f"`x` has {x.shape[1]} items per instance, which must divide the {y[0].size} values of "
            "a label."
        )
    return int(x.shape[1])
