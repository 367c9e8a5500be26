"""Problems: a solver, an objective and a sense.

Adapters to solver libraries are modules of this package, imported by name: `lodl.problems.highs`,
`cvxpy`, `pyomo`, `ortools`, `gurobi` and `pyepo`. Their calls fail, with the solver's status, if a
model is infeasible or unbounded, or if a limit passes before any decision is found.
"""

from lodl.problems._functions import problem
from lodl.problems._problem import LinearProblem, Problem, VectorisedProblem

__all__ = ["LinearProblem", "Problem", "VectorisedProblem", "problem"]
