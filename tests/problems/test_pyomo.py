from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.optimize import linprog

from lodl.errors import InvalidInputError, OracleError, ProblemError, ShapeError
from lodl.oracle import Oracle
from lodl.problems.pyomo import PyomoProblem
from lodl.samplers import AllPerturbed
from lodl.testing import check_problem

pyo = pytest.importorskip("pyomo.environ")
pytest.importorskip("highspy")
RNG = np.random.default_rng(0)
WEIGHTS = RNG.uniform(1, 3, (2, 4))


def knapsack_model(domain=None):
    model = pyo.ConcreteModel()
    model.I, model.J = pyo.RangeSet(0, 3), pyo.RangeSet(0, 1)
    model.worth = pyo.Param(model.I, mutable=True, initialize=0.0, within=pyo.Any)
    model.capacity = pyo.Param(model.J, mutable=True, initialize=4.0)
    model.z = pyo.Var(model.I, bounds=(0, 1), within=domain or pyo.Reals)
    model.unused = pyo.Var()
    model.fits = pyo.Constraint(
        model.J,
        rule=lambda m, j: sum(WEIGHTS[j, i] * m.z[i] for i in m.I) <= m.capacity[j],
    )
    gain = sum(model.worth[i] * model.z[i] for i in model.I)
    model.gain = pyo.Objective(expr=gain, sense=pyo.maximize)
    return model


def newsvendor(*, first_stage=("order",)):
    model = pyo.ConcreteModel()
    model.I = pyo.Set(initialize=["bread", "milk"])
    model.demand = pyo.Param(model.I, mutable=True, within=pyo.NonNegativeReals, initialize=0)
    model.order = pyo.Var(model.I, within=pyo.NonNegativeReals)
    model.missing = pyo.Var(model.I, within=pyo.NonNegativeReals)
    model.met = pyo.Constraint(model.I, rule=lambda m, i: m.order[i] + m.missing[i] >= m.demand[i])
    model.shelf = pyo.Constraint(expr=pyo.summation(model.order) <= 10)
    price = {"bread": 3, "milk": 4}
    later = sum(price[i] * model.missing[i] for i in model.I)
    model.cost = pyo.Objective(expr=pyo.summation(model.order) + later)
    return PyomoProblem(model, "demand", first_stage=first_stage)


@pytest.mark.parametrize("model", [knapsack_model, knapsack_model()], ids=["function", "model"])
@pytest.mark.parametrize(
    "context", [None, {"capacity": np.array([2.0, 3.0])}, {"capacity": {0: 2.0, 1: 3.0}}]
)
def test_the_decision_is_the_one_of_scipy(model, context):
    problem, y = PyomoProblem(model, "worth"), RNG.random(4)
    capacity = np.full(2, 4.0) if context is None else [2.0, 3.0]
    best = -linprog(-y, A_ub=WEIGHTS, b_ub=capacity, bounds=(0, 1)).fun
    z = problem.solve(y, context)
    assert problem.objective(z, y, context) == pytest.approx(best)
    other = RNG.random(4)
    assert problem.objective(z, other, context) == pytest.approx(z["z"] @ other)


def test_a_context_does_not_outlive_its_call_and_the_users_model_is_not_touched():
    model = knapsack_model()
    problem, y = PyomoProblem(model, "worth"), RNG.random(4)
    before = problem.solve(y)["z"]
    problem.solve(y, {"capacity": np.ones(2)})
    np.testing.assert_allclose(problem.solve(y)["z"], before)
    assert pyo.value(model.worth[0]) == 0
    assert model.z[0].value is None


def test_a_parameter_without_a_value_must_be_in_the_context():
    model = pyo.ConcreteModel()
    model.rate, model.limit = pyo.Param(mutable=True), pyo.Param(mutable=True)
    model.z = pyo.Var(bounds=(0, model.limit))
    model.gain = pyo.Objective(expr=model.rate * model.z, sense=pyo.maximize)
    problem = PyomoProblem(model, "rate")
    assert problem.solve(np.ones(1), {"limit": 2})["z"] == pytest.approx(2)
    with pytest.raises(ValueError, match=r"Param value \(limit\)"):
        problem.solve(np.ones(1))


def test_whole_numbers_are_whole():
    problem = PyomoProblem(knapsack_model(pyo.Binary), "worth", options={"mip_rel_gap": 0.0})
    assert set(problem.solve(np.ones(4))["z"]) <= {0.0, 1.0}
    check_problem(problem, RNG.random((2, 4)))


def test_recourse_is_solved_under_the_truth_with_the_decision_fixed():
    problem = newsvendor()
    for y_hat, y in RNG.uniform(0, 8, (4, 2, 2)):
        order = problem.solve(y_hat)
        assert list(order) == ["order"]
        missing = np.maximum(y - order["order"], 0)
        cost = order["order"].sum() + missing @ [3, 4]
        assert problem.objective(order, y) == pytest.approx(cost)
    check_problem(problem, RNG.uniform(2, 5, (2, 2)))


def test_a_decision_that_the_truth_forbids_names_the_pattern():
    problem = newsvendor(first_stage=None)
    z = problem.solve(np.array([2.0, 5.0]))
    assert problem.objective(z, np.array([2.0, 5.0])) == pytest.approx(7)
    with pytest.raises(
        ProblemError, match=r"breaks a constraint under the true 'demand'.*first_st"
    ):
        problem.objective(z, np.array([3.0, 5.0]))
    rigid = newsvendor(first_stage=["order", "missing"])
    with pytest.raises(ProblemError, match=r"with `first_stage` fixed: .*'infeasible"):
        rigid.objective(rigid.solve(np.ones(2)), np.full(2, 3.0))


def test_a_bound_that_is_predicted_counts_as_a_constraint():
    model = pyo.ConcreteModel()
    model.limit = pyo.Param(mutable=True, initialize=1.0)
    model.z = pyo.Var(bounds=(0, model.limit))
    model.gain = pyo.Objective(expr=model.z, sense=pyo.maximize)
    problem = PyomoProblem(model, "limit")
    z = problem.solve(np.array([3.0]))
    assert problem.objective(z, np.array([3.0])) == pytest.approx(3)
    with pytest.raises(ProblemError, match="breaks a constraint"):
        problem.objective(z, np.array([2.0]))


def test_predictions_are_clipped_to_the_domain_of_the_parameter():
    np.testing.assert_array_equal(newsvendor().project(np.array([[-1.0, 2.0]])), [[0, 2]])


def test_the_contract_is_kept():
    assert check_problem(PyomoProblem(knapsack_model, "worth"), RNG.random((2, 4))).is_affine
    assert check_problem(PyomoProblem(knapsack_model, "worth"), RNG.random((2, 2, 2))).is_affine


def test_workers_threads_and_a_store_give_the_same_answers(tmp_path):
    problem, y = PyomoProblem(knapsack_model(), "worth"), RNG.random((3, 4))
    context = [{"capacity": np.full(2, c)} for c in (2.0, 3.0, 4.0)]
    asked = {"context": context, "sampler": AllPerturbed(0.5), "slopes": True}
    here = Oracle(problem).sample(y, n_samples=4, **asked)
    with ThreadPoolExecutor(2) as threads:
        runs = [
            Oracle(problem, n_jobs=2, store=tmp_path / "store").sample(y, n_samples=2, **asked),
            Oracle(problem, n_jobs=2, store=tmp_path / "store").sample(y, n_samples=4, **asked),
            Oracle(problem, executor=threads).sample(y, n_samples=4, **asked),
        ]
    for run in runs:
        np.testing.assert_allclose(run[2].regret, here[2].regret[: run.n_samples], atol=1e-9)


def test_threads_that_share_a_problem_do_not_disturb_each_other():
    problem, y = PyomoProblem(knapsack_model, "worth"), RNG.random((12, 4))
    alone = [problem.solve(one)["z"] for one in y]
    with ThreadPoolExecutor(3) as threads:
        together = [z["z"] for z in threads.map(problem.solve, y)]
    np.testing.assert_allclose(together, alone, atol=1e-9)


def test_calls_leave_no_handlers_behind_that_would_slow_later_ones():
    problem = PyomoProblem(knapsack_model, "worth")
    for _ in range(3):
        problem.solve(np.ones(4))
    assert problem._models.get()._solver._solver_model.cbSimplexInterrupt.callbacks == []


def test_failed_calls_carry_the_termination_condition():
    problem = PyomoProblem(knapsack_model, "worth")
    with pytest.raises(OracleError, match=r"instance 0, the label itself.*'infeasible'"):
        Oracle(problem).sample(
            np.ones((1, 4)), AllPerturbed(1), 1, context=[{"capacity": np.full(2, -1.0)}]
        )
    assert problem.solve(np.ones(4))["z"].max() == 1  # the next call works
    free = pyo.ConcreteModel()
    free.rate, free.z = pyo.Param(mutable=True, initialize=1.0), pyo.Var()
    free.cost = pyo.Objective(expr=free.rate * free.z)
    with pytest.raises(ProblemError, match="'unbounded'"):
        PyomoProblem(free, "rate").solve(np.ones(1))


def test_a_time_limit_without_a_decision_is_a_failed_call():
    model = pyo.ConcreteModel()
    model.I = pyo.RangeSet(0, 49)
    model.costs = pyo.Param(model.I, mutable=True, initialize=0.0)
    model.z = pyo.Var(model.I, within=pyo.Binary)
    numbers = RNG.integers(1, 100, (5, 50)).tolist()
    model.sums = pyo.Constraint(
        range(5), rule=lambda m, j: sum(numbers[j][i] * m.z[i] for i in m.I) == 1205
    )
    model.cost = pyo.Objective(expr=pyo.summation(model.costs, model.z))
    problem = PyomoProblem(model, "costs", options={"time_limit": 0.0})
    with pytest.raises(ProblemError, match="'maxTimeLimit'"):
        problem.solve(RNG.random(50))


def test_a_wrong_argument_is_named():
    model = knapsack_model()
    model.fixed = pyo.Param(initialize=1.0)
    problem = PyomoProblem(model, "worth")
    for call, message in [
        (lambda: PyomoProblem("model", "worth"), "`model` must be a"),
        (lambda: PyomoProblem(model, "value"), r"`parameter` must name a Param.*'worth'.*got 'va"),
        (lambda: PyomoProblem(model, "z"), "`parameter` must name a Param"),
        (lambda: PyomoProblem(model, "fixed"), "must be made with `mutable=True`"),
        (lambda: PyomoProblem(model, "worth", first_stage="z"), "must be a list of names"),
        (lambda: PyomoProblem(model, "worth", first_stage=["w"]), "`first_stage` must name a Var"),
        (lambda: PyomoProblem(pyo.ConcreteModel, "worth"), "`parameter` must name a Param"),
        (lambda: problem.solve(np.ones(4), {"budget": 1}), "`context` must name a Param"),
        (lambda: problem.solve(np.ones(4), {"worth": 1}), "'worth', which is predicted"),
        (lambda: problem.solve(np.ones(4), {"capacity": 1}), "'capacity' takes 2 numbers, got 1"),
        (lambda: problem.solve(np.ones(4), np.ones(2)), "must be a dict of parameters"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            call()
    with pytest.raises(ShapeError, match=r"per index of 'worth', 4, got shape \(3,\)"):
        problem.solve(np.ones(3))
    model.gain.deactivate()
    with pytest.raises(InvalidInputError, match="one active objective"):
        PyomoProblem(model, "worth")
