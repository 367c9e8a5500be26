"""One evaluator for all methods: what decisions cost more than the best ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.domains import Split
from lodl.oracle import Oracle
from lodl.problems import LinearProblem, Problem
from lodl.problems._problem import projected, sign_of

Index = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Regrets of predictions for given instances."""

    problem: Problem  # the problem
    part: Split  # the instances
    optimum: Array  # DL(y, y) of each of them

    @classmethod
    def of(cls, problem: Problem, part: Split) -> "Evaluator":
        """Call the solver for the best decision of each instance, once each."""
        blank = cls(problem, part, np.zeros(len(part.y)))
        return cls(problem, part, blank.losses(part.y, np.arange(len(part.y))))

    @property
    def scale(self) -> float:
        """Mean size of what the best decisions cost: the unit of relative regret."""
        return float(np.abs(self.optimum).mean())

    def regret(self, y_hat: Array, rows: Index) -> Array:
        """Return the regret of each prediction, by one call each.

        `y_hat` has shape (k, *label_shape), `rows` are the instances that they are for.
        """
        return self.losses(y_hat, rows) - self.optimum[rows]

    def losses(self, y_hat: Array, rows: Index) -> Array:
        """Return the decision loss of each prediction."""
        problem, y, context = self.problem, self.part.y, self.part.context
        y_hat = projected(problem, y_hat)
        if isinstance(problem, LinearProblem) and problem.is_vectorised and context is None:
            zs: Any = problem.solve_many(y_hat, None)  # all at once: the decisions are the slopes
            values: Array = (np.asarray(zs) * y[rows]).reshape(len(rows), -1).sum(axis=1)
            return sign_of(problem) * values
        contexts = None if context is None else [context[row] for row in rows]
        return Oracle(problem, progress=False).decision_loss(y_hat, y[rows], context=contexts)
