import numpy as np
import pytest

from lodl.errors import InvalidInputError, ProblemError, ShapeError
from lodl.problems.cvxpy import CvxpyProblem

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


def test_the_users_model_is_not_touched():
    problem, values = model()
    CvxpyProblem(problem, values).solve(RNG.random(4), {"capacity": np.ones(2)})
    assert values.value is None
    assert problem.variables()[0].value is None


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


def test_a_model_keeps_its_variables_apart_from_those_another_process_makes(monkeypatch):
    numbers = cp.lin_ops.lin_utils.ID_COUNTER
    for first in range(12, 36, 2):  # some meet a variable that compiling makes
        monkeypatch.setattr(numbers, "count", first)
        x, w, c = cp.Variable(5, name="x"), cp.Variable(5, name="w"), cp.Parameter(5, name="c")
        cost = cp.norm1(x - w) + cp.sum_squares(x) + cp.max(w) + cp.norm1(w) - c @ x
        problem = CvxpyProblem(cp.Problem(cp.Minimize(cost), [cp.norm(w, 2) <= 0.5]), c)
        monkeypatch.setattr(numbers, "count", 1)  # as in a fresh process
        np.testing.assert_allclose(problem.solve(np.full(5, 3.0))["x"], 1, atol=1e-3)


def test_an_unbounded_model_is_a_failed_call():
    free, slope = cp.Variable(name="free"), cp.Parameter(name="slope")
    with pytest.raises(ProblemError, match="its status is 'unbounded'"):
        CvxpyProblem(cp.Problem(cp.Minimize(slope * free)), slope).solve(np.ones(1))


def test_a_wrong_argument_is_named():
    problem, values = model()
    twins = cp.Variable(name="twin") + cp.Variable(name="twin") + cp.sum(values)
    with pytest.raises(InvalidInputError, match="`problem` must be a"):
        CvxpyProblem(values, values)
    with pytest.raises(InvalidInputError, match=r"`parameter` must be a.*which has"):
        CvxpyProblem(problem, cp.Parameter(4))
    with pytest.raises(InvalidInputError, match="`first_stage` must list variables"):
        CvxpyProblem(problem, values, first_stage=[cp.Variable()])
    with pytest.raises(InvalidInputError, match="Two variables have the same name"):
        CvxpyProblem(cp.Problem(cp.Minimize(twins)), values)
    adapter = CvxpyProblem(problem, values)
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


def tracking():  # a norm of the parameter, which CVXPY moves to the constraints
    target, z = cp.Parameter(3, name="target"), cp.Variable(3, name="z")
    return cp.Problem(cp.Minimize(cp.norm1(z - target) + cp.sum_squares(z))), target


@pytest.mark.parametrize(
    ("make", "solver"),
    [(model, "HIGHS"), (quadratic, "CLARABEL"), (matrices, None), (tracking, None)],
)
def test_it_decides_and_scores_like_cvxpy(make, solver):
    problem, parameter = make()
    adapter, rng = CvxpyProblem(problem, parameter, solver=solver), np.random.default_rng(1)
    for y in rng.normal(size=(3, *parameter.shape)):
        z = adapter.solve(y)
        parameter.value = y
        problem.solve(solver=solver, warm_start=False)
        np.testing.assert_array_equal(z["z"], problem.var_dict["z"].value)
        assert adapter.objective(z, y) == pytest.approx(problem.objective.value, rel=1e-12)


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
