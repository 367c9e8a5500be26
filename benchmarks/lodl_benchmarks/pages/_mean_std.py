"""A mean and a standard deviation over runs, or a standard error."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lodl.report import Cell


@dataclass(frozen=True)
class MeanStd:
    """A mean and its standard deviation over runs, printed with two decimals."""

    mean: float
    std: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "MeanStd":
        """Return the mean and the (population) standard deviation of values."""
        return cls(float(np.mean(values)), float(np.std(values)))

    def __str__(self) -> str:
        return f"{self.mean:z.2f} ± {self.std:.2f}"  # z: no minus before a zero

    def times(self, factor: float) -> "MeanStd":
        """Return the same in another unit."""
        return MeanStd(factor * self.mean, factor * self.std)

    def is_apart_from(self, other: "MeanStd") -> bool:
        """Return whether the two intervals mean ± std, rounded as printed, do not meet."""
        return abs(self.mean - other.mean) > self.std + other.std + 0.01


def mean_cell(ours: MeanStd | None, published: MeanStd | None = None) -> Cell:
    """Return our number, a published one in brackets, and a star if they are apart."""
    if ours is None:
        return Cell("")
    if published is None:
        return Cell(str(ours), ours.mean)
    star = " *" if ours.is_apart_from(published) else ""
    return Cell(f"{ours} ({published}){star}", ours.mean)


def plus_minus(mean: float, error: float, *, signed: bool = False) -> str:
    """Return a mean with its standard error, which has two significant digits."""
    sign = "+" if signed else ""
    if not 0 < error < math.inf:  # a single run has no error
        return f"{mean:{sign}z.2f}"
    decimals = max(0, 1 - math.floor(math.log10(float(f"{error:.1e}"))))
    return f"{mean:{sign}z.{decimals}f} ± {error:.{decimals}f}"
