"""`Standardised`: samples of one instance in units of size one, and parameters converted back."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl._typing import Array

_ROUNDING = 1e-9  # share of the largest size below which a size counts as 0


@dataclass(frozen=True, eq=False)
class Standardised:
    """Samples of one instance in units in which each coordinate and the regret has size one.

    Attributes:
        d: Errors over their scale, shape (K, D).
        regret: Regrets over their scale, shape (K,).
        d_scale: Root mean square of each coordinate's error, shape (D,). A zero is replaced by the
            median of the other coordinates.
        regret_scale: Root mean square of the regrets, or 1 if that is zero.
    """

    d: Array
    regret: Array
    d_scale: Array
    regret_scale: float

    @classmethod
    def of(cls, d: Array, regret: Array) -> "Standardised":
        """Standardise errors of shape (K, D) and regrets of shape (K,)."""
        d_scale, regret_scale = error_scale(d), float(_size(regret)) or 1.0
        return cls(d / d_scale, regret / regret_scale, d_scale, regret_scale)

    @classmethod
    def as_they_are(cls, d: Array, regret: Array) -> "Standardised":
        """Keep the units of errors and regrets."""
        return cls(d, regret, np.ones(d.shape[1]), 1.0)

    @property
    def is_perturbed(self) -> npt.NDArray[np.bool_]:
        """Whether any sample changes a coordinate, shape (D,)."""
        return np.asarray(self.d.any(axis=0))

    @property
    def typical_cost(self) -> float:
        """The mean regret, at least 0.01: a positive size for a first guess of the loss."""
        return max(float(self.regret.mean()), 1e-2)

    def weights(self, w: Array) -> Array:
        """Convert weights of squared errors, shape (D,), to the units of the samples."""
        return w * self.regret_scale / self.d_scale**2

    def factor(self, factor: Array) -> Array:
        """Convert linear maps of the error, shape (..., D, k), to the units of the samples."""
        return factor * math.sqrt(self.regret_scale) / self.d_scale[:, np.newaxis]


def error_scale(d: Array) -> Array:
    """Return the size of each coordinate's error. Unperturbed coordinates get the median size."""
    return with_typical(_size(d))


def mean_weight(w: Array, mean_square: Array) -> Array:
    """Return the mean weight of errors of size one, in the units of each coordinate: (D,)."""
    unit = np.square(with_typical(np.sqrt(mean_square)))
    return np.asarray((w * unit).mean() / unit)


def with_typical(size: Array) -> Array:
    """Replace zeros by the median of the other sizes, or by 1 if all are zero.

    Sizes within rounding error count as zero, as for a label that is the same at every instance.
    """
    moved = size > _ROUNDING * size.max(initial=0.0)
    return np.where(moved, size, np.median(size[moved]) if moved.any() else 1.0)


def _size(values: Array) -> Array:
    """Return the root mean square over the first axis."""
    return np.asarray(np.sqrt(np.einsum("k...,k...->...", values, values) / len(values)))
