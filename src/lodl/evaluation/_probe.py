"""True regret and learned loss at the same points, for some of the instances."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, Context
from lodl.errors import LodlError
from lodl.losses import LearnedLoss
from lodl.oracle import Oracle
from lodl.problems import Problem
from lodl.problems._problem import projected


@dataclass(frozen=True, eq=False)
class Probe:
    """Some of the instances, where true regret and learned loss are looked at.

    Attributes:
        oracle: Calls the solver.
        index: The positions of the instances among all.
        y: Their labels.
        context: Their contexts, or None.
    """

    oracle: Oracle
    index: npt.NDArray[np.intp]
    y: Array
    context: Context

    @classmethod
    def at(
        cls, index: npt.NDArray[np.intp], problem: Problem | Oracle, y: Array, context: Context
    ) -> Self:
        """Take the instances `index` from the labels and contexts of all."""
        chosen = None if context is None else [context[i] for i in index]
        return cls(Oracle.of(problem, progress=False), index, y[index], chosen)

    def project(self, points: Array) -> Array:
        """Return points of shape (m, n, *label_shape) in the problem's valid range."""
        flat = points.reshape(-1, *points.shape[2:])
        return projected(self.oracle.problem, flat).reshape(points.shape)

    def regret(self, points: Array) -> Array:
        """Return the true regret of points (m, n, *label_shape), shape (m, n).

        This takes one oracle call per point, and one per label.
        """
        try:
            return self.oracle.regret(points, self.y, context=self.context)
        except LodlError as error:
            error.add_note(f"Instances are numbered within {self.index.tolist()}.")
            raise

    def loss(self, loss: LearnedLoss, points: Array) -> Array:
        """Return the learned loss of points (m, n, *label_shape), shape (m, n)."""
        d = np.moveaxis(points - self.y, 0, 1).reshape(len(self.y), len(points), loss.dim)
        return np.asarray(loss.family.value(loss.rows(self.index).phi, d)).T
