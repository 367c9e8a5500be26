"""Problems: a solver, an objective, a sense."""

from lodl.problems._function_problem import problem
from lodl.problems._linear_problem import LinearProblem
from lodl.problems._problem import Problem, VectorisedProblem

__all__ = ["LinearProblem", "Problem", "VectorisedProblem", "problem"]
