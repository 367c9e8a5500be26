from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.optimize import linprog

from lodl.errors import InvalidInputError, OracleError, ProblemError, ShapeError
from lodl.oracle import Oracle
from lodl.problems.cvxpy import CvxpyProblem
from lodl.samplers import AllPerturbed
from lodl.testing import check_problem

cp = pytest.importorskip("cvxpy")
RNG = np.random.default_rng(0)
WEIGHTS = RNG.uniform(1, 3, (2, 4))


def model(*, boolean=False):
    """Return a knapsack, its values and its capacity, which is a parameter too."""
    values, capacity = cp.Parameter(4, name="values"), cp.Parameter(2, name="capacity")
    capacity.value = np.full(2, 4.0)
    z = cp.Variable(4, name="z", boolean=boolean)
    constraints = [WEIGHTS @ z <= capacity, *([] if boolean else [z >= 0, z <= 1])]
    return cp.Problem(cp.Maximize(values @ z), constraints), values


def knapsack(**options):
    problem, values = model()
    return CvxpyProblem(problem, values, **options)


def newsvendor(*, first_stage=True):
    demand = cp.Parameter(2, nonneg=True, name="demand")
    order, missing = cp.Variable(2, nonneg=True, name="order"), cp.Variable(2, nonneg=True)
    cost = cp.sum(order) + np.array([3, 4]) @ missing
    problem = cp.Problem(cp.Minimize(cost), [order + missing >= demand, cp.sum(order) <= 10])
    return CvxpyProblem(problem, demand, first_stage=[order] if first_stage else None)


@pytest.mark.parametrize("context", [None, {"capacity": np.array([2.0, 3.0])}])
def test_the_decision_is_the_one_of_scipy(context):
    problem, y = knapsack(), RNG.random(4)
    capacity = np.full(2, 4.0) if context is None else context["capacity"]
    best = -linprog(-y, A_ub=WEIGHTS, b_ub=capacity, bounds=(0, 1)).fun
    z = problem.solve(y, context)
    assert list(z) == ["z"]
    assert problem.objective(z, y, context) == pytest.approx(best, rel=1e-6)
    other = RNG.random(4)
    assert problem.objective(z, other, context) == pytest.approx(z["z"] @ other)


def test_a_context_does_not_outlive_its_call_and_the_users_model_is_not_touched():
    problem, values = model()
    adapter, y = CvxpyProblem(problem, values), RNG.random(4)
    before = adapter.solve(y)["z"]
    adapter.solve(y, {"capacity": np.ones(2)})
    np.testing.assert_array_equal(adapter.solve(y)["z"], before)
    assert values.value is None
    assert problem.variables()[0].value is None


def test_whole_numbers_are_whole():
    problem, values = model(boolean=True)
    adapter = CvxpyProblem(problem, values, solver="HIGHS", options={"mip_rel_gap": 0.0})
    assert set(adapter.solve(np.ones(4))["z"]) <= {0.0, 1.0}
    check_problem(adapter, RNG.random((2, 4)))


def test_a_scalar_parameter_is_predicted_by_labels_of_one_number():
    rate, z = cp.Parameter(name="rate"), cp.Variable(name="z")
    problem = CvxpyProblem(cp.Problem(cp.Minimize((z - rate) ** 2)), rate)
    assert problem.solve(np.array([3.0]))["z"] == pytest.approx(3)


@pytest.mark.filterwarnings("ignore:You are solving a parameterized problem that is not DPP")
def test_a_model_that_is_not_dpp_works_too():
    rate, z = cp.Parameter(2, name="rate", nonneg=True), cp.Variable(2, name="z")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(cp.multiply(rate**2, z) - 1)))
    assert not problem.is_dpp()
    found = CvxpyProblem(problem, rate).solve(np.array([1.0, 2.0]))["z"]
    np.testing.assert_allclose(found, [1, 0.25], rtol=1e-4)


def test_recourse_is_solved_under_the_truth_with_the_decision_fixed():
    problem = newsvendor()
    order = problem.solve(np.array([2.0, 5.0]))
    assert list(order) == ["order"]
    assert problem.objective(order, np.array([3.0, 4.0])) == pytest.approx(7 + 3, rel=1e-5)
    check_problem(problem, RNG.uniform(2, 5, (2, 2)))


def test_a_decision_that_the_truth_forbids_names_the_pattern():
    problem = newsvendor(first_stage=False)
    z = problem.solve(np.array([2.0, 5.0]))
    assert problem.objective(z, np.array([2.0, 5.0])) == pytest.approx(7, rel=1e-5)
    with pytest.raises(
        ProblemError, match=r"breaks a constraint under the true 'demand'.*first_st"
    ):
        problem.objective(z, np.array([3.0, 5.0]))


def test_predictions_are_projected_on_what_the_parameter_allows():
    np.testing.assert_array_equal(newsvendor().project(np.array([[-1.0, 2.0]])), [[0, 2]])


def test_the_contract_is_kept():
    assert check_problem(knapsack(), RNG.random((2, 4))).is_affine


def test_workers_threads_and_a_store_give_the_same_answers(tmp_path):
    problem, y = knapsack(), RNG.random((3, 4))
    context = [{"capacity": np.full(2, c)} for c in (2.0, 3.0, 4.0)]
    asked = {"context": context, "sampler": AllPerturbed(0.5), "slopes": True}
    here = Oracle(problem).sample(y, n_samples=4, **asked)  # set up before it travels
    with ThreadPoolExecutor(2) as threads:
        runs = [
            Oracle(problem, n_jobs=2, store=tmp_path / "store").sample(y, n_samples=2, **asked),
            Oracle(problem, n_jobs=2, store=tmp_path / "store").sample(y, n_samples=4, **asked),
            Oracle(problem, executor=threads).sample(y, n_samples=4, **asked),
        ]
    for run in runs:
        np.testing.assert_array_equal(run[2].regret, here[2].regret[: run.n_samples])


def test_threads_that_share_a_problem_do_not_disturb_each_other():
    problem, y = knapsack(), RNG.random((12, 4))
    alone = [problem.solve(one)["z"] for one in y]
    with ThreadPoolExecutor(3) as threads:
        together = [z["z"] for z in threads.map(problem.solve, y)]
    np.testing.assert_array_equal(together, alone)


def test_a_model_keeps_its_variables_apart_from_those_another_process_makes(monkeypatch):
    numbers = cp.lin_ops.lin_utils.ID_COUNTER
    for first in range(12, 36, 2):  # some meet a variable that compiling makes
        monkeypatch.setattr(numbers, "count", first)
        x, w, c = cp.Variable(5, name="x"), cp.Variable(5, name="w"), cp.Parameter(5, name="c")
        cost = cp.norm1(x - w) + cp.sum_squares(x) + cp.max(w) + cp.norm1(w) - c @ x
        problem = CvxpyProblem(cp.Problem(cp.Minimize(cost), [cp.norm(w, 2) <= 0.5]), c)
        monkeypatch.setattr(numbers, "count", 1)  # as in a fresh process
        np.testing.assert_allclose(problem.solve(np.full(5, 3.0))["x"], 1, atol=1e-3)


def test_failed_calls_carry_the_status_of_cvxpy():
    problem = knapsack()
    with pytest.raises(OracleError, match=r"instance 0, the label itself.*'infeasible'"):
        Oracle(problem).sample(
            np.ones((1, 4)), AllPerturbed(1), 1, context=[{"capacity": np.full(2, -1.0)}]
        )
    free, slope = cp.Variable(name="free"), cp.Parameter(name="slope")
    with pytest.raises(ProblemError, match="its status is 'unbounded'"):
        CvxpyProblem(cp.Problem(cp.Minimize(slope * free)), slope).solve(np.ones(1))


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_a_time_limit_without_a_decision_is_a_failed_call():
    z, costs = cp.Variable(50, boolean=True, name="z"), cp.Parameter(50, name="costs")
    sums = RNG.integers(1, 100, (5, 50)) @ z == 1205
    problem = cp.Problem(cp.Minimize(costs @ z), [sums])
    adapter = CvxpyProblem(problem, costs, solver="HIGHS", options={"time_limit": 0.0})
    with pytest.raises(ProblemError, match=r"CVXPY found no decision.*.user_limit."):
        adapter.solve(RNG.random(50))


def test_a_wrong_argument_is_named():
    problem, values = model()
    twins = cp.Variable(name="twin") + cp.Variable(name="twin") + cp.sum(values)
    with pytest.raises(InvalidInputError, match="`problem` must be a"):
        CvxpyProblem(values, values)
    with pytest.raises(InvalidInputError, match=r"`parameter` must be a.*which has"):
        CvxpyProblem(problem, cp.Parameter(4))
    with pytest.raises(InvalidInputError, match="`first_stage` must list variables"):
        CvxpyProblem(problem, values, first_stage=[cp.Variable()])
    with pytest.raises(InvalidInputError, match="Two variables have one name"):
        CvxpyProblem(cp.Problem(cp.Minimize(twins)), values)
    adapter = CvxpyProblem(problem, values)
    with pytest.raises(InvalidInputError, match=r"among \['capacity'\], got \['budget'\]"):
        adapter.solve(np.ones(4), {"budget": 1})
    with pytest.raises(ShapeError, match=r"shape \(4,\) of 'values', got \(2, 2\)"):
        adapter.solve(np.ones((2, 2)))
    problem.param_dict["capacity"].value = None
    with pytest.raises(InvalidInputError, match="'capacity' has no value"):
        CvxpyProblem(problem, values).solve(np.ones(4))


def quadratic():
    rate, risk = cp.Parameter(3, name="rate"), cp.Parameter(nonneg=True, name="risk", value=1.0)
    z = cp.Variable(3, name="z", nonneg=True)
    cost = risk * cp.sum_squares(z) - rate @ z
    return cp.Problem(cp.Minimize(cost), [cp.sum(z) <= 1]), rate


def matrices():
    costs, z = cp.Parameter((2, 3), name="costs"), cp.Variable((2, 3), name="z", nonneg=True)
    goal = cp.Maximize(cp.sum(cp.multiply(costs, z)) - cp.norm1(z[:, 0]))
    return cp.Problem(goal, [cp.sum(z, axis=1) <= 1, cp.norm(z, "fro") <= 1.2]), costs


def tracking():  # not in the objective alone: a norm of it goes to the constraints
    target, z = cp.Parameter(3, name="target"), cp.Variable(3, name="z")
    return cp.Problem(cp.Minimize(cp.norm1(z - target) + cp.sum_squares(z))), target


@pytest.mark.parametrize(
    ("make", "solver", "is_quick"),
    [
        (model, None, True),
        (model, "HIGHS", True),
        (quadratic, None, True),
        (quadratic, "CLARABEL", True),
        (matrices, None, True),
        (tracking, None, False),
    ],
)
def test_the_quick_way_decides_and_scores_like_cvxpy(make, solver, is_quick):
    problem, parameter = make()
    adapter, rng = CvxpyProblem(problem, parameter, solver=solver), np.random.default_rng(1)
    for y in rng.normal(size=(3, *parameter.shape)):
        z = adapter.solve(y)
        parameter.value = y
        problem.solve(solver=solver, warm_start=False)
        np.testing.assert_array_equal(z["z"], problem.var_dict["z"].value)
        assert adapter.objective(z, y) == pytest.approx(problem.objective.value, rel=1e-12)
    assert (adapter._models.get()._compiled.solve() is not None) == is_quick


@pytest.mark.parametrize("make", [model, quadratic, matrices, tracking], ids=lambda m: m.__name__)
def test_the_slope_is_the_derivative_of_the_objective(make):
    problem, parameter = make()
    adapter, rng = CvxpyProblem(problem, parameter), np.random.default_rng(2)
    y = rng.normal(size=parameter.shape)
    z = adapter.solve(rng.normal(size=parameter.shape))
    slope, step = adapter.slope(z, y), 1e-5
    for at in np.ndindex(y.shape):
        moved = np.zeros(y.shape)
        moved[at] = step
        difference = adapter.objective(z, y + moved) - adapter.objective(z, y - moved)
        assert slope[at] == pytest.approx(difference / (2 * step), abs=1e-6)
