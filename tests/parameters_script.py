"""Problems of every kind; run as a program, it prints the parameters of all but PyEPO's.

python parameters_script.py
"""

import json
import sys
from functools import partial
from importlib.util import find_spec

import numpy as np

import lodl
from lodl._digest import problem_parameters
from lodl.problems.highs import LinearProgram


class Shop(lodl.Problem):
    """A plain class, with attributes that are no parameters."""

    sense = "min"

    def __init__(self, prices, capacity, name="corner", *, solver=None):
        self.prices, self._capacity, self.name, self.solver = prices, capacity, name, solver
        self.n_calls, self._cache = 0, {}

    def solve(self, y_hat, context):
        self.n_calls += 1
        self._cache[self.n_calls] = y_hat
        return int(y_hat.argmin())

    def objective(self, z, y, context):
        return float(y[z] + self.prices[z])


def solve(y_hat, capacity=1):
    return np.argsort(y_hat)[:capacity]


def total(z, y):
    return float(y[z].sum())


def of_cvxpy():
    import cvxpy as cp

    from lodl.problems.cvxpy import CvxpyProblem

    costs, z = cp.Parameter(3, name="costs"), cp.Variable(3, name="z", nonneg=True)
    return CvxpyProblem(cp.Problem(cp.Minimize(costs @ z), [cp.sum(z) == 1]), costs)


def of_pyomo():
    import pyomo.environ as pyo

    from lodl.problems.pyomo import PyomoProblem

    model = pyo.ConcreteModel()
    model.costs = pyo.Param(range(3), mutable=True, initialize=0.0)
    model.z = pyo.Var(range(3), bounds=(0, 1))
    model.cost = pyo.Objective(expr=sum(model.costs[i] * model.z[i] for i in range(3)))
    return PyomoProblem(model, "costs")


def of_ortools():
    from lodl.problems.ortools import OrtoolsLinearProblem

    return OrtoolsLinearProblem(solve, "max")


def of_pyepo():
    from pyepo.model.omo import knapsackModel

    from lodl.problems.pyepo import PyepoProblem

    return PyepoProblem(knapsackModel([[3, 4, 5]], [8], solver="appsi_highs"))


def problems(skipped=()):
    """Return a problem of each kind whose packages are installed, by name."""
    made = {
        "plain class": Shop(np.array([1.0, 2.0, 3.0]), 2.0),
        "dataclass": lodl.domains.knapsack(sizes=(1, 1, 1)).problem,
        "functions": lodl.problem(partial(solve, capacity=2), total, sense="min", unit="EUR"),
        "lambdas": lodl.problem(lambda y: 0, lambda z, y: 0.0, sense="min"),
        "highs": LinearProgram([[3, 4, 5]], "max", row_upper=8, upper=1, predicted=[0, 2]),
    }
    adapters = {
        "cvxpy": (of_cvxpy, ["cvxpy"]),
        "pyomo": (of_pyomo, ["pyomo", "highspy"]),
        "ortools": (of_ortools, ["ortools"]),
        "pyepo": (of_pyepo, ["pyepo"]),
    }
    for name, (make, packages) in adapters.items():
        if name not in skipped and all(map(find_spec, packages)):
            made[name] = make()
    return made


if __name__ == "__main__":
    made = problems(skipped=["pyepo"])
    json.dump({name: problem_parameters(one) for name, one in made.items()}, sys.stdout)
