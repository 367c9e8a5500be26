"""Problems: a solver, an objective, a sense."""

from lodl.problems._function_problem import problem
from lodl.problems._portfolio import Portfolio
from lodl.problems._problem import Problem, VectorisedProblem
from lodl.problems._top_k import TopK
from lodl.problems._web_advertising import WebAdvertising

__all__ = ["Portfolio", "Problem", "TopK", "VectorisedProblem", "WebAdvertising", "problem"]
