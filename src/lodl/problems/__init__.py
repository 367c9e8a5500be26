"""Problems: a solver, an objective and a sense.

Adapters to solver libraries are modules of this package, imported by name: `lodl.problems.highs`,
`cvxpy`, `pyomo`, `ortools`, `gurobi`, `pyepo` and `command`.
"""

from lodl.problems._functions import problem
from lodl.problems._problem import LinearProblem, Problem, VectorisedProblem

__all__ = ["LinearProblem", "Problem", "VectorisedProblem", "problem"]
