from typing import Any

import numpy as np
import pytest

from lodl import Oracle
from lodl.errors import InvalidInputError, ProblemError
from lodl.problems.gurobi import GurobiProblem
from lodl.samplers import AllPerturbed
from lodl.testing import check_problem

gp = pytest.importorskip("gurobipy")


def knapsack(env, n=3):
    model = gp.Model(env=env)
    take = model.addMVar(n, vtype="B")
    model.addConstr(np.arange(3, n + 3) @ take <= 8)
    return model, take


def facilities(env):
    """Serve two customers, each from one of two places; a place costs 3 to open."""
    model = gp.Model(env=env)
    serve = model.addMVar((2, 2), vtype="B")
    is_open = model.addMVar(2, vtype="B", obj=3.0)
    model.addConstr(serve <= is_open)
    model.addConstr(serve.sum(axis=1) == 1)
    return model, serve


def test_a_model_is_built_once_while_the_context_stays():
    built = []

    def counted(env, context):
        built.append(context)
        return knapsack(env)

    problem = GurobiProblem(counted, "max")
    for context in [8, 8, 9, 9, 8]:
        problem.solve(np.ones(3), context)
    assert built == [8, 9, 8]


def test_a_problem_is_named_by_the_function_that_builds_it():
    assert repr(GurobiProblem(knapsack, "max")) == "GurobiProblem(knapsack)"


def test_known_costs_are_part_of_the_objective_and_not_of_its_slope():
    problem = GurobiProblem(facilities, "min")
    y = np.array([[1.1, 2.3], [5.7, 0.4]])
    z = problem.solve(y)
    np.testing.assert_array_equal(z, [[0, 1], [0, 1]])  # 3 + 2.3 + 0.4 is less than 6 + 1.1 + 0.4
    assert problem.objective(z, y) == pytest.approx(5.7, rel=1e-9)
    assert problem.objective(z, y + 1) == pytest.approx(7.7, rel=1e-9)
    np.testing.assert_array_equal(problem.slope(z, y), z)
    assert check_problem(problem, y + np.random.default_rng(0).random((2, 2, 2))).is_affine


@pytest.mark.parametrize("warm_start", [False, True])
def test_decisions_are_optimal_with_and_without_warm_starts(warm_start):
    cold, problem = (
        GurobiProblem(knapsack, "max"),
        GurobiProblem(knapsack, "max", warm_start=warm_start),
    )
    for y in np.random.default_rng(0).random((8, 3)):
        np.testing.assert_array_equal(problem.solve(y), cold.solve(y))


def test_gurobi_prints_nothing_and_other_options_reach_it(capfd):
    seen = []

    def build(env):
        model, take = knapsack(env)
        seen.append((model.Params.Threads, model.Params.MIPGap, model.Params.Seed))
        return model, take

    GurobiProblem(build, "max", options={"MIPGap": 0.1, "Seed": 7}).solve(np.ones(3))
    assert seen == [(1, 0.1, 7)]
    assert capfd.readouterr().out == ""


def test_a_missing_licence_is_a_failed_call_that_says_so():
    too_large = GurobiProblem(lambda env: knapsack(env, n=2001), "max")
    with pytest.raises(ProblemError, match=r"found no decision.*license"):
        too_large.solve(np.ones(2001))
    nowhere = {"ComputeServer": "localhost:1", "ServerTimeout": 1}
    with pytest.raises(ProblemError, match=r"Gurobi cannot start.*use fewer \(`n_jobs`\)"):
        GurobiProblem(knapsack, "max", options=nowhere).solve(np.ones(3))
    with pytest.raises(ProblemError, match=r"cannot start: Unknown parameter 'TimeLimt'\.$"):
        GurobiProblem(knapsack, "max", options={"TimeLimt": 3}).solve(np.ones(3))


def test_workers_build_their_own_models():
    def build(env):  # inside, so that it is pickled by value
        import gurobipy as gp

        model = gp.Model(env=env)
        take = model.addVars(3, vtype="B")
        model.addConstr(3 * take[0] + 4 * take[1] + 5 * take[2] <= 8)
        return model, take

    y = np.random.default_rng(0).random((2, 3))
    settings = {"sampler": AllPerturbed(0.5), "n_samples": 4}
    alone = Oracle(GurobiProblem(build, "max")).sample(y, **settings)
    together = Oracle(GurobiProblem(build, "max"), n_jobs=2, progress=False).sample(y, **settings)
    np.testing.assert_array_equal(together[1].regret, alone[1].regret)


def test_a_wrong_argument_is_named():
    def with_costs(env):
        model, take = facilities(env)
        model.ModelSense = gp.GRB.MINIMIZE
        return model, take

    three: Any = lambda env: 3  # noqa: E731
    rows: Any = lambda env: (model := gp.Model(env=env), model.addConstr(model.addVar() >= 1))  # noqa: E731
    for call, message in [
        (lambda: GurobiProblem(knapsack, "best"), "`sense` of GurobiProblem"),
        (lambda: GurobiProblem(three, "max").solve(np.ones(3)), "must return a model"),
        (lambda: GurobiProblem(lambda env: (3, []), "max").solve(np.ones(3)), "a `gp.Model`"),
        (lambda: GurobiProblem(rows, "max").solve(np.ones(1)), "variables to decide"),
        (lambda: GurobiProblem(with_costs, "max").solve(np.ones((2, 2))), "has the other one"),
    ]:
        with pytest.raises((InvalidInputError, ProblemError), match=message):
            call()
