"""Overhead of the solver adapters, as ratios measured in one run.

- rebuild: time to write and solve a CVXPY model anew for each prediction, relative to a call of
  `CvxpyProblem` (target: at least 10);
- overhead: how much longer a call and its score take than the model's own library takes to solve it
  with new values, for models of about a millisecond (target: at most 20 %).

    python speed/adapters.py

Times are processor times, which other programs on the machine hardly change; library and adapter
take turns, and the best of several rounds counts.
"""

import time
from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
from ortools.sat.python import cp_model
from pyepo.model.omo import knapsackModel
from scipy.optimize import Bounds, LinearConstraint, milp

from lodl._typing import Array
from lodl.problems.cvxpy import CvxpyProblem
from lodl.problems.highs import LinearProgram
from lodl.problems.ortools import OrtoolsLinearProblem, integer_costs
from lodl.problems.pyepo import PyepoProblem
from lodl.problems.pyomo import PyomoProblem

RNG = np.random.default_rng(0)
N_ITEMS = 40
WEIGHTS = RNG.uniform(1, 3, (15, N_ITEMS))
CAPACITY = WEIGHTS.sum(axis=1) / 3


def main() -> None:
    knapsack_in_cvxpy()
    knapsack_in_highs()
    knapsack_in_pyomo()
    knapsack_in_pyepo()
    choice_in_cp_sat()
    for n_periods in (24, 96):  # hours and quarters of an hour
        schedule_in_cvxpy(n_periods)


def knapsack_in_cvxpy() -> None:
    """Compare a model of a few constraints with CVXPY's own `solve`."""
    values, z = cp.Parameter(N_ITEMS, name="values"), cp.Variable(N_ITEMS, name="z")
    model = cp.Problem(cp.Maximize(values @ z), [WEIGHTS @ z <= CAPACITY, z >= 0, z <= 1])
    problem = CvxpyProblem(model, values)

    def own(y: Array) -> None:
        values.value = y
        model.solve(warm_start=False)

    say_overhead("CVXPY", own, lambda y: problem.objective(problem.solve(y), y))


def knapsack_in_highs() -> None:
    """Compare the same model, as arrays, with SciPy's `milp`."""
    problem = LinearProgram(WEIGHTS, "max", row_upper=CAPACITY, upper=1)
    rows, bounds = LinearConstraint(WEIGHTS, -np.inf, CAPACITY), Bounds(0, 1)
    say_overhead(
        "HiGHS",
        lambda y: milp(-y, constraints=rows, bounds=bounds),
        lambda y: problem.objective(problem.solve(y), y),
    )


def knapsack_in_pyomo() -> None:
    """Compare the same model with a solver of Pyomo's that is kept."""
    model = pyo.ConcreteModel()
    model.worth = pyo.Param(range(N_ITEMS), mutable=True, initialize=0.0)
    model.z = pyo.Var(range(N_ITEMS), bounds=(0, 1))
    model.fits = pyo.Constraint(
        range(len(WEIGHTS)),
        rule=lambda m, j: sum(WEIGHTS[j, i] * m.z[i] for i in range(N_ITEMS)) <= CAPACITY[j],
    )
    gain = pyo.summation(model.worth, model.z)
    model.gain = pyo.Objective(expr=gain, sense=pyo.maximize)
    problem, solver = PyomoProblem(model, "worth"), pyo.SolverFactory("appsi_highs")

    def own(y: Array) -> None:
        for item, value in enumerate(y.tolist()):
            model.worth[item] = value
        solver.solve(model)

    say_overhead("Pyomo", own, lambda y: problem.objective(problem.solve(y), y))


def knapsack_in_pyepo() -> None:
    """Compare a model of PyEPO's, of whole numbers, with its own `solve`."""
    weights = RNG.integers(3, 8, (1, N_ITEMS))
    model = knapsackModel(weights=weights, capacity=[30], solver="appsi_highs")
    problem = PyepoProblem(model)

    def own(y: Array) -> None:
        model.setObj(y)
        model.solve()

    say_overhead("PyEPO", own, lambda y: problem.objective(problem.solve(y), y))


def choice_in_cp_sat() -> None:
    """Compare the choice of eight items with CP-SAT."""

    def build() -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
        model = cp_model.CpModel()
        z = [model.new_bool_var(f"{i}") for i in range(N_ITEMS)]
        model.add(sum(z) <= 8)
        return model, z

    model, z = build()

    def own(y: Array) -> None:
        costs = integer_costs(y)[0].tolist()
        model.maximize(cp_model.LinearExpr.weighted_sum(z, costs))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.solve(model)

    problem = OrtoolsLinearProblem(build, "max")
    say_overhead("CP-SAT", own, lambda y: problem.objective(problem.solve(y), y))


def schedule_in_cvxpy(n_periods: int) -> None:
    """Compare a schedule, written period by period as users do, with writing it anew."""

    def write(price: Array | cp.Parameter) -> cp.Problem:
        power, stored = cp.Variable(n_periods, name="power"), cp.Variable(n_periods, name="stored")
        rules = [stored[0] == 1, power >= -1, power <= 1, stored >= 0, stored <= 4]
        for t in range(n_periods - 1):
            rules += [stored[t + 1] == stored[t] + power[t], power[t + 1] - power[t] <= 0.5]
        return cp.Problem(cp.Minimize(price @ power), rules)

    price = cp.Parameter(n_periods, name="price")
    problem = CvxpyProblem(write(price), price)
    again = seconds(lambda y: write(y).solve(), n_periods, n_calls=5)
    kept = seconds(lambda y: problem.objective(problem.solve(y), y), n_periods)
    print(
        f"CVXPY rebuild, {n_periods} periods: {1e3 * again:.1f} ms anew, {1e3 * kept:.2f} ms kept, "
        f"x{again / kept:.0f}"
    )


def say_overhead(
    name: str,
    own: Callable[[Array], object],
    call: Callable[[Array], float],
    size: int = N_ITEMS,
) -> None:
    pairs = [(seconds(own, size), seconds(call, size)) for _ in range(5)]
    alone, adapted = (min(times) for times in zip(*pairs, strict=True))
    print(
        f"{name} overhead: {1e3 * alone:.2f} ms alone, {1e3 * adapted:.2f} ms adapted, "
        f"{adapted / alone - 1:+.0%}"
    )


def seconds(call: Callable[[Array], object], size: int, n_calls: int = 50) -> float:
    """Return the time of a call, the best of three rounds."""
    rounds = []
    call(RNG.random(size))  # what is set up once does not count
    for _ in range(3):
        predictions = RNG.random((n_calls, size))
        began = time.process_time()
        for y_hat in predictions:
            call(y_hat)
        rounds.append((time.process_time() - began) / n_calls)
    return min(rounds)


if __name__ == "__main__":
    main()
