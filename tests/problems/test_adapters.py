"""One contract for all solver adapters: the same two problems, written for each library.

`KNAPSACKS` maximise predicted values of five items within two capacities, which are the context.
`NEWSVENDORS` order two goods by predicted demand, and buy what is missing later. An adapter gets
every test below by one entry in each table it can join.
"""

import doctest
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from typing import Any

import cloudpickle
import numpy as np
import pytest

from lodl import Oracle
from lodl.errors import InvalidInputError, OracleError, ProblemError, ShapeError
from lodl.problems.cvxpy import CvxpyProblem
from lodl.problems.gurobi import GurobiProblem
from lodl.problems.highs import LinearProgram, RecourseProgram
from lodl.problems.ortools import OrtoolsLinearProblem
from lodl.problems.pyepo import PyepoProblem
from lodl.problems.pyomo import PyomoProblem
from lodl.samplers import AllPerturbed
from lodl.testing import check_problem

cp = pytest.importorskip("cvxpy")
pyo = pytest.importorskip("pyomo.environ")
pytest.importorskip("highspy")
cp_model = pytest.importorskip("ortools.sat.python.cp_model")
pyepo = pytest.importorskip("pyepo")
pytest.importorskip("gurobipy")

WEIGHTS = np.array([[3.0, 4.0, 5.0, 2.0, 6.0], [1.0, 5.0, 2.0, 4.0, 3.0]])
CAPACITY, SMALLER, IMPOSSIBLE = (9.0, 8.0), (6.0, 5.0), (-1.0, 8.0)
ITEMS, ROWS = range(5), range(2)
PACKINGS = np.array(list(product([0.0, 1.0], repeat=5)))
DEMAND, HIGHER = np.array([2.0, 5.0]), np.array([3.0, 5.0])


@dataclass(frozen=True)
class Knapsack:
    """A knapsack of an adapter.

    Attributes:
        make: Makes the problem.
        context: Makes an instance's context from two capacities; None if the adapter takes none.
        vector: Reads the five numbers of a decision.
        unknown: Context with a name that the model does not have, or None.
    """

    make: Callable[[], Any]
    context: Callable[[tuple[float, float]], Any] | None
    vector: Callable[[Any], Any] = np.asarray
    unknown: Any = None


def in_highs():
    return LinearProgram(WEIGHTS, "max", row_upper=CAPACITY, upper=1, integrality=1)


def in_cvxpy():
    values, capacity = cp.Parameter(5, name="values"), cp.Parameter(2, name="capacity")
    capacity.value = np.array(CAPACITY)
    z = cp.Variable(5, name="z", boolean=True)
    model = cp.Problem(cp.Maximize(values @ z), [WEIGHTS @ z <= capacity])
    return CvxpyProblem(model, values, solver="HIGHS", options={"mip_rel_gap": 0.0})


def in_pyomo():
    model = pyo.ConcreteModel()
    model.worth = pyo.Param(ITEMS, mutable=True, initialize=0.0)
    model.capacity = pyo.Param(ROWS, mutable=True, initialize=dict(enumerate(CAPACITY)))
    model.z = pyo.Var(ITEMS, within=pyo.Binary)
    model.unused = pyo.Var()
    model.fits = pyo.Constraint(
        ROWS, rule=lambda m, j: sum(WEIGHTS[j, i] * m.z[i] for i in ITEMS) <= m.capacity[j]
    )
    gain = sum(model.worth[i] * model.z[i] for i in ITEMS)
    model.gain = pyo.Objective(expr=gain, sense=pyo.maximize)
    return PyomoProblem(model, "worth", options={"mip_rel_gap": 0.0})


def in_cp_sat():
    rows, default, cp_sat = WEIGHTS.astype(int).tolist(), CAPACITY, cp_model

    def build(context):  # inside, so that it is pickled by value
        model = cp_sat.CpModel()
        take = [model.new_bool_var(f"take{i}") for i in range(5)]
        for weights, room in zip(rows, context or default, strict=True):
            model.add(cp_sat.LinearExpr.weighted_sum(take, weights) <= int(room))
        return model, take

    return OrtoolsLinearProblem(build, "max")


def in_gurobi():
    default = CAPACITY

    def build(env, context):  # inside, so that it is pickled by value
        import gurobipy as gp

        model = gp.Model(env=env)
        take = model.addMVar(5, vtype="B")
        model.addConstr(np.array(WEIGHTS) @ take <= np.array(context or default))
        return model, take

    return GurobiProblem(build, "max")


def in_pyepo():
    from pyepo.model.omo import knapsackModel

    return PyepoProblem(knapsackModel(WEIGHTS, np.array(CAPACITY), solver="appsi_highs"))


def by_name(name):
    return {
        "context": lambda capacity: {name: np.array(capacity)},
        "unknown": {"budget": 3.0},
    }


def of_z(z):
    return z["z"]


KNAPSACKS = {
    "highs": Knapsack(in_highs, **by_name("row_upper")),
    "cvxpy": Knapsack(in_cvxpy, vector=of_z, **by_name("capacity")),
    "pyomo": Knapsack(in_pyomo, vector=of_z, **by_name("capacity")),
    "cp-sat": Knapsack(in_cp_sat, tuple),
    "gurobi": Knapsack(in_gurobi, tuple),
    "pyepo": Knapsack(in_pyepo, None),
}
every_knapsack = pytest.mark.parametrize("name", KNAPSACKS)
with_context = pytest.mark.parametrize(
    "name", [name for name, knapsack in KNAPSACKS.items() if knapsack.context]
)


def highs_newsvendor(*, with_recourse=True):
    program = LinearProgram(
        [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]],
        "min",
        row_upper=[np.inf, np.inf, 10],
        costs=[1, 1, 3, 4],
        upper=[np.inf, np.inf, 100, 100] if with_recourse else [np.inf, np.inf, 0, 0],
    )
    rows = {"predicted": "row_lower", "rows": [0, 1]}
    return RecourseProgram(program, first_stage=[0, 1], **rows)


def cvxpy_newsvendor(*, with_recourse=True):
    demand = cp.Parameter(2, nonneg=True, name="demand")
    order, missing = cp.Variable(2, nonneg=True, name="order"), cp.Variable(2, nonneg=True)
    cost = cp.sum(order) + np.array([3, 4]) @ missing
    rules = [order + missing >= demand, cp.sum(order) <= 10]
    return CvxpyProblem(
        cp.Problem(cp.Minimize(cost), rules),
        demand,
        first_stage=[order] if with_recourse else None,
        solver="HIGHS",
    )


def pyomo_newsvendor(*, with_recourse=True):
    model = pyo.ConcreteModel()
    model.I = pyo.Set(initialize=["bread", "milk"])
    model.demand = pyo.Param(model.I, mutable=True, within=pyo.NonNegativeReals, initialize=0)
    model.order = pyo.Var(model.I, within=pyo.NonNegativeReals)
    model.missing = pyo.Var(model.I, within=pyo.NonNegativeReals)
    model.met = pyo.Constraint(model.I, rule=lambda m, i: m.order[i] + m.missing[i] >= m.demand[i])
    model.shelf = pyo.Constraint(expr=pyo.summation(model.order) <= 10)
    later = 3 * model.missing["bread"] + 4 * model.missing["milk"]
    model.cost = pyo.Objective(expr=pyo.summation(model.order) + later)
    return PyomoProblem(model, "demand", first_stage=["order"] if with_recourse else None)


def gurobi_newsvendor(*, with_recourse=True):
    def build(env):
        import gurobipy as gp

        model = gp.Model(env=env)
        order = model.addVars(2, obj=1)
        missing = model.addMVar(2, obj=np.array([3.0, 4.0]), ub=100.0 * with_recourse)
        met = model.addConstrs(order[i] + missing[i] >= 0 for i in range(2))
        model.addConstr(order.sum() <= 10)
        return model, met, order

    return GurobiProblem(build, "min")


NUMBERS = np.random.default_rng(0).integers(1, 100, (5, 50))  # rows that must add up to 1205


def hard_in_highs():
    equal = {"row_lower": 1205, "row_upper": 1205, "upper": 1, "integrality": 1}
    return LinearProgram(NUMBERS, "min", options={"time_limit": 0.0}, **equal)


def hard_in_cvxpy():
    z, costs = cp.Variable(50, boolean=True, name="z"), cp.Parameter(50, name="costs")
    model = cp.Problem(cp.Minimize(costs @ z), [NUMBERS @ z == 1205])
    return CvxpyProblem(model, costs, solver="HIGHS", options={"time_limit": 0.0})


def hard_in_pyomo():
    model = pyo.ConcreteModel()
    model.costs = pyo.Param(range(50), mutable=True, initialize=0.0)
    model.z = pyo.Var(range(50), within=pyo.Binary)
    model.sums = pyo.Constraint(
        range(5), rule=lambda m, j: sum(int(NUMBERS[j, i]) * m.z[i] for i in range(50)) == 1205
    )
    model.cost = pyo.Objective(expr=pyo.summation(model.costs, model.z))
    return PyomoProblem(model, "costs", options={"time_limit": 0.0})


def hard_in_cp_sat():
    def build():
        model = cp_model.CpModel()
        z = [model.new_bool_var(f"{i}") for i in range(50)]
        for weights in NUMBERS.tolist():
            model.add(cp_model.LinearExpr.weighted_sum(z, weights) == 1205)
        return model, z

    return OrtoolsLinearProblem(build, "min", options={"max_time_in_seconds": 1e-3})


def hard_in_gurobi():
    def build(env):
        import gurobipy as gp

        model = gp.Model(env=env)
        z = model.addMVar(50, vtype="B")
        model.addConstr(NUMBERS @ z == 1205)
        return model, z

    return GurobiProblem(build, "min", options={"TimeLimit": 0.0})


NEWSVENDORS = {
    "highs": highs_newsvendor,
    "cvxpy": cvxpy_newsvendor,
    "pyomo": pyomo_newsvendor,
    "gurobi": gurobi_newsvendor,
}
every_newsvendor = pytest.mark.parametrize("name", NEWSVENDORS)


def best_packing(values, capacity):
    fits = PACKINGS[(capacity >= PACKINGS @ WEIGHTS.T).all(axis=1)]
    return fits[(fits @ values).argmax()]


def values_of(n, seed=0):
    return np.random.default_rng(seed).normal(1, 1, (n, 5))


@every_knapsack
def test_the_decision_is_the_one_of_brute_force_and_scored_under_the_label(name):
    knapsack, problem = KNAPSACKS[name], KNAPSACKS[name].make()
    contexts = [(CAPACITY, None)]
    if knapsack.context is not None:
        contexts += [(SMALLER, knapsack.context(SMALLER))]
    assert problem.sense == "max"
    for capacity, context in contexts:
        for y_hat, y in zip(values_of(4), values_of(4, seed=1), strict=True):
            z = problem.solve(y_hat, context)
            np.testing.assert_array_equal(knapsack.vector(z), best_packing(y_hat, capacity))
            assert problem.objective(z, y, context) == pytest.approx(knapsack.vector(z) @ y)


@pytest.mark.slow
@every_knapsack
def test_a_knapsack_keeps_the_contract_of_a_problem(name):
    assert check_problem(KNAPSACKS[name].make(), values_of(2)).is_affine


@pytest.mark.parametrize("name", ["highs", "pyomo", "cp-sat", "gurobi", "pyepo"])
def test_labels_of_any_shape_are_read_row_by_row(name):
    problem, vector, y_hat = KNAPSACKS[name].make(), KNAPSACKS[name].vector, values_of(1)
    row = np.ravel(vector(problem.solve(y_hat)))
    np.testing.assert_array_equal(row, vector(problem.solve(y_hat[0])))


@with_context
def test_a_context_does_not_outlive_its_call(name):
    knapsack, problem = KNAPSACKS[name], KNAPSACKS[name].make()
    y_hat = values_of(1)[0]
    before = knapsack.vector(problem.solve(y_hat))
    assert knapsack.vector(problem.solve(y_hat, knapsack.context((0.0, 0.0)))).sum() == 0
    np.testing.assert_array_equal(knapsack.vector(problem.solve(y_hat)), before)


@every_knapsack
def test_later_calls_leave_earlier_decisions_as_they_were(name):
    knapsack, problem = KNAPSACKS[name], KNAPSACKS[name].make()
    first, *others = values_of(3)
    z = problem.solve(first)
    for y_hat in others:
        problem.objective(problem.solve(y_hat), y_hat)
    np.testing.assert_array_equal(knapsack.vector(z), best_packing(first, CAPACITY))


@every_knapsack
def test_a_problem_in_use_is_pickled_and_shared_by_threads(name):
    knapsack, problem = KNAPSACKS[name], KNAPSACKS[name].make()
    y = values_of(6)
    alone = [knapsack.vector(problem.solve(y_hat)) for y_hat in y]
    travelled = pickle.loads(cloudpickle.dumps(problem))  # noqa: S301 - our own
    with ThreadPoolExecutor(3) as threads:
        for shared in (problem, travelled):
            together = [knapsack.vector(z) for z in threads.map(shared.solve, y)]
            np.testing.assert_array_equal(together, alone)


@pytest.mark.slow
@every_knapsack
def test_a_worker_and_a_store_give_the_same_answers(name, tmp_path):
    knapsack, problem, y = KNAPSACKS[name], KNAPSACKS[name].make(), values_of(3)
    capacities = [CAPACITY, SMALLER, (7.0, 7.0)]
    contexts = knapsack.context and [knapsack.context(capacity) for capacity in capacities]
    settings = {"sampler": AllPerturbed(0.5), "context": contexts, "slopes": True}
    answers = Oracle(problem).sample(y, n_samples=4, **settings)
    assert (answers[2].regret >= 0).all()
    one_worker = {"n_jobs": 1, "timeout": 60}  # a second one would import the library again
    for n_samples, workers in ((2, one_worker), (4, {})):
        oracle = Oracle(problem, store=tmp_path / "store", progress=False, **workers)
        regret = oracle.sample(y, n_samples=n_samples, **settings)[2].regret
        np.testing.assert_allclose(regret, answers[2].regret[:n_samples], atol=1e-9)


@with_context
def test_an_infeasible_model_is_a_failed_call_and_the_next_call_works(name):
    knapsack, problem = KNAPSACKS[name], KNAPSACKS[name].make()
    context, y = knapsack.context(IMPOSSIBLE), values_of(1)
    with pytest.raises(OracleError, match=r"instance 0, the label itself.*[Ii](nfeasible|NFEAS)"):
        Oracle(problem).sample(y, AllPerturbed(1), 1, context=[context])
    best = best_packing(y[0], CAPACITY)
    np.testing.assert_array_equal(knapsack.vector(problem.solve(y[0])), best)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize(
    ("make", "status"),
    [
        (hard_in_highs, "[Tt]ime limit"),
        (hard_in_cvxpy, "user_limit"),
        (hard_in_pyomo, "maxTimeLimit"),
        (hard_in_cp_sat, "UNKNOWN"),
        (hard_in_gurobi, "TIME_LIMIT"),
    ],
)
def test_a_time_limit_without_a_decision_is_a_failed_call(make, status):
    with pytest.raises(ProblemError, match=f"found no decision.*{status}"):
        make().solve(np.random.default_rng(0).random(50))


@pytest.mark.parametrize("name", KNAPSACKS)
def test_a_prediction_of_the_wrong_size_is_refused(name):
    with pytest.raises(ShapeError, match=r"A prediction must have .*5.*, got (shape )?\(3,\)"):
        KNAPSACKS[name].make().solve(np.ones(3))


@pytest.mark.parametrize("name", [name for name, known in KNAPSACKS.items() if known.unknown])
def test_a_context_must_name_what_it_replaces(name):
    problem = KNAPSACKS[name].make()
    with pytest.raises(InvalidInputError, match=r"must be a dict of .* among .*keys \['budget'\]"):
        problem.solve(np.ones(5), KNAPSACKS[name].unknown)
    with pytest.raises(InvalidInputError, match=r"must be a dict of .* got ndarray"):
        problem.solve(np.ones(5), np.ones(2))


@every_newsvendor
def test_recourse_is_solved_under_the_label_with_the_decision_fixed(name):
    problem = NEWSVENDORS[name]()
    assert problem.sense == "min"
    for y_hat, y in np.random.default_rng(2).uniform(0, 8, (4, 2, 2)):
        z = problem.solve(y_hat)
        order = z["order"] if isinstance(z, dict) else z
        assert not isinstance(z, dict) or list(z) == ["order"]
        cost = order.sum() + np.maximum(y - order, 0) @ [3, 4]
        assert problem.objective(z, y) == pytest.approx(cost)


@every_newsvendor
def test_a_newsvendor_keeps_the_contract_of_a_problem(name):
    y = np.random.default_rng(2).uniform(2, 5, (2, 2))
    assert not check_problem(NEWSVENDORS[name](), y).is_affine


@every_newsvendor
def test_a_decision_that_the_label_forbids_says_what_to_add(name):
    problem = NEWSVENDORS[name](with_recourse=False)
    z = problem.solve(DEMAND)
    assert problem.objective(z, DEMAND) == pytest.approx(7, rel=1e-5)
    message = r"(violates a constraint with 'demand'|[Ii](nfeas|NFEAS)).*Give the model recourse"
    with pytest.raises(ProblemError, match=message):
        problem.objective(z, HIGHER)


@pytest.mark.parametrize("name", ["cvxpy", "pyomo"])
def test_predictions_are_projected_on_the_range_of_the_parameter(name):
    problem = NEWSVENDORS[name]()
    np.testing.assert_array_equal(problem.project(np.array([[-1.0, 2.0]])), [[0, 2]])


@pytest.mark.parametrize("module", ["highs", "cvxpy", "pyomo", "pyepo", "ortools", "gurobi"])
def test_the_examples_of_an_adapter_run(module):
    results = doctest.testmod(import_module(f"lodl.problems.{module}"))
    assert results.attempted > 0
    assert results.failed == 0
