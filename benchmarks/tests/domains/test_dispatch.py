import cvxpy as cp
import numpy as np
import pytest

from lodl.errors import InvalidInputError
from lodl_benchmarks.domains import Dispatch, dispatch


def by_cvxpy(problem, y_hat):
    z = cp.Variable(len(y_hat), nonneg=True)
    short = y_hat - z
    cost = cp.sum(problem.shortage * cp.pos(short) + problem.surplus * cp.neg(short))
    program = cp.Problem(cp.Minimize(cost), [cp.abs(cp.diff(z)) <= problem.ramp])
    return program.solve(solver=cp.CLARABEL)


def test_the_dispatch_is_the_cheapest():
    domain = dispatch(sizes=(10, 1, 1))
    for y_hat in domain.splits.train.y:
        z = domain.problem.solve(y_hat, None)
        assert (z >= 0).all()
        assert np.abs(np.diff(z)).max() <= 0.2 + 1e-9
        expected = by_cvxpy(domain.problem, y_hat)
        assert domain.problem.objective(z, y_hat, None) == pytest.approx(expected, abs=1e-6)


def test_a_ramp_that_never_binds_lets_power_follow_the_prediction():
    y_hat = np.array([1.0, 5.0, 2.0])
    np.testing.assert_allclose(Dispatch(ramp=10.0).solve(y_hat), y_hat, atol=1e-9)
    np.testing.assert_allclose(Dispatch().solve(np.array([2.0])), [2.0])


@pytest.mark.parametrize(("y", "cost"), [([2.0, 3.0], 0.0), ([3.0, 3.0], 50.0), ([2.0, 1.0], 1.0)])
def test_a_shortage_is_dearer_than_a_surplus(y, cost):
    assert Dispatch().objective(np.array([2.0, 3.0]), np.array(y)) == cost


@pytest.mark.parametrize("name", ["ramp", "shortage", "surplus"])
def test_settings_must_be_positive(name):
    with pytest.raises(InvalidInputError, match=f"`{name}` must be a positive number"):
        Dispatch(**{name: 0.0})


def test_a_prediction_must_be_a_vector():
    with pytest.raises(InvalidInputError, match=r"a vector of demands, got shape \(2, 2\)"):
        Dispatch().solve(np.zeros((2, 2)))
