from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from lodl.errors import InvalidInputError, ProblemError
from lodl.problems.pyomo import PyomoProblem

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


def test_the_users_model_is_not_touched():
    model = knapsack_model()
    PyomoProblem(model, "worth").solve(RNG.random(4), {"capacity": np.ones(2)})
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


def test_a_bound_that_is_predicted_counts_as_a_constraint():
    model = pyo.ConcreteModel()
    model.limit = pyo.Param(mutable=True, initialize=1.0)
    model.z = pyo.Var(bounds=(0, model.limit))
    model.gain = pyo.Objective(expr=model.z, sense=pyo.maximize)
    problem = PyomoProblem(model, "limit")
    z = problem.solve(np.array([3.0]))
    assert problem.objective(z, np.array([3.0])) == pytest.approx(3)
    with pytest.raises(ProblemError, match="violates a constraint with 'limit'"):
        problem.objective(z, np.array([2.0]))


def test_calls_leave_no_handlers_behind_that_would_slow_later_ones():
    problem = PyomoProblem(knapsack_model, "worth")
    for _ in range(3):
        problem.solve(np.ones(4))
    model: Any = problem._models.get()
    assert model._solver._solver_model.cbSimplexInterrupt.callbacks == []


def test_an_unbounded_model_is_a_failed_call():
    free = pyo.ConcreteModel()
    free.rate, free.z = pyo.Param(mutable=True, initialize=1.0), pyo.Var()
    free.cost = pyo.Objective(expr=free.rate * free.z)
    with pytest.raises(ProblemError, match="'unbounded'"):
        PyomoProblem(free, "rate").solve(np.ones(1))


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
        (lambda: problem.solve(np.ones(4), {"worth": 1}), r"among \['capacity'\], got.*'worth'"),
        (lambda: problem.solve(np.ones(4), {"capacity": 1}), "'capacity' takes 2 numbers, got 1"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            call()
    model.gain.deactivate()
    with pytest.raises(InvalidInputError, match="one active objective"):
        PyomoProblem(model, "worth")
