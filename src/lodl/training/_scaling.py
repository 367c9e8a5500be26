"""Features and labels in units of their own spread."""

from dataclasses import dataclass

import numpy as np

from lodl._typing import Array

_ROUNDING = 1e-12  # of the centre: the spread of values that are all the same


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

    def around_zero(self) -> "Scaling":
        """Return the same spread around 0."""
        return Scaling(np.zeros_like(self.centre), self.spread)

    @classmethod
    def none(cls) -> "Scaling":
        """Return a scaling that changes nothing."""
        return cls(np.zeros(()), np.ones(()))

    @classmethod
    def _of(cls, centre: Array, spread: Array) -> "Scaling":
        return cls(centre, np.where(spread > _ROUNDING * np.abs(centre), spread, 1.0))

    def scaled(self, values: Array) -> Array:
        """Return values in units of the spread around the centre."""
        return (values - self.centre) / self.spread
