"""Points that are given, not drawn: the predictions of one or several models."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.samplers._sampler import BLOCK_SIZE, Sampler, Scale


@dataclass(frozen=True, eq=False)
class GivenPoints(Sampler):
    """Returns the given points in their order.

    Attributes:
        points: Points of each instance, shape (n, m, *label_shape).
    """

    points: Array
    scale: Scale = 1.0

    def noise(self, rng: np.random.Generator, n: int, label_shape: tuple[int, ...]) -> Array:
        return np.zeros((n, *label_shape))

    def centres(self, y: Array) -> Array:
        return self.points

    def take(self, instances: slice | npt.NDArray[np.intp]) -> Self:
        return replace(self, points=self.points[instances])

    def settings(self) -> dict[str, Any]:
        return {}

    def draw(
        self, y: Array, centre: Array, scale: Array, *, seed: int, key: int, block: int, n: int
    ) -> Array:
        first = block * BLOCK_SIZE
        return np.array(centre[first : first + n])
