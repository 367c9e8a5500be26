"""True regret and learned loss at the same points."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, Context
from lodl._validation import check_context
from lodl.errors import LodlError
from lodl.evaluation._decision_loss import regret
from lodl.losses import LearnedLoss
from lodl.problems import Problem
from lodl.problems._problem import check_problem_type, projected


@dataclass(frozen=True, eq=False)
class Oracle:
    """A problem at some of the instances.

    Attributes:
        problem: The problem.
        index: The numbers of the instances.
        y: Their labels.
        context: Their contexts, or None.
    """

    problem: Problem
    index: npt.NDArray[np.intp]
    y: Array
    context: Context

    @classmethod
    def of(
        cls, problem: Problem, y: Array, context: Context, index: npt.NDArray[np.intp]
    ) -> "Oracle":
        """Takes the instances `index` from the labels and contexts of all, and checks them."""
        check_problem_type(problem)
        check_context(context, len(y))
        chosen = None if context is None else [context[i] for i in index]
        return cls(problem, index, y[index], chosen)

    def project(self, points: Array) -> Array:
        """Returns points of shape (m, n, *label_shape) in the problem's valid range."""
        flat = points.reshape(-1, *points.shape[2:])
        return projected(self.problem, flat).reshape(points.shape)

    def regret(self, points: Array) -> Array:
        """Returns the regret of points (m, n, *label_shape), shape (m, n).

        It takes one call for each point, and one for each label.
        """
        try:
            return regret(self.problem, points, self.y, context=self.context, progress=False)
        except LodlError as error:
            error.add_note(f"Instances are counted within {self.index.tolist()}.")
            raise

    def loss(self, loss: LearnedLoss, points: Array) -> Array:
        """Returns the learned loss of points (m, n, *label_shape), shape (m, n)."""
        d = np.moveaxis(points - self.y, 0, 1).reshape(len(self.y), len(points), loss.dim)
        return np.asarray(loss.family.value(loss.rows(self.index).phi, d)).T
