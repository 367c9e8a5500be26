import sys

import cvxpy as cp
import numpy as np
import pytest

from lodl.domains import Portfolio
from lodl.errors import InvalidInputError, MissingExtraError
from lodl.oracle import Oracle
from lodl.testing import check_problem


def regrets(problem, y_hats, y, context=None):
    """Return the regrets of many predictions for one instance."""
    contexts = None if context is None else [context]
    return Oracle(problem).regret(np.asarray(y_hats)[:, None], y[None], context=contexts)[:, 0]


BOTH = pytest.mark.parametrize("fully_invested", [True, False])


def correlation(rng, n_stocks, n_days=120):
    """Correlation of returns with a common factor, plus 0.1 on the diagonal."""
    returns = rng.standard_normal((n_days, n_stocks)) + rng.standard_normal((n_days, 1))
    return np.corrcoef(returns, rowvar=False) + 0.1 * np.eye(n_stocks)


def diagonal(rng, n_stocks):
    return np.diag(rng.uniform(0.1, 3.0, size=n_stocks))


def low_rank(rng, n_stocks):
    factors = rng.standard_normal((n_stocks, 3))
    return factors @ factors.T / 3


def optimum(problem, y_hat, risk):
    """The optimal value by another solver (an interior-point method)."""
    z = cp.Variable(len(y_hat), nonneg=True)
    value = y_hat @ z - problem.risk_aversion * cp.quad_form(z, cp.psd_wrap(risk))
    budget = cp.sum(z) == 1 if problem.fully_invested else cp.sum(z) <= 1
    program = cp.Problem(cp.Maximize(value), [budget])
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return program.value


def assert_feasible(z, problem):
    assert z.min() >= 0
    assert z.sum() <= 1 + 1e-9
    if problem.fully_invested:
        assert z.sum() == pytest.approx(1, abs=1e-9)


@BOTH
@pytest.mark.parametrize("scale", [0.02, 1.0])
@pytest.mark.parametrize("matrix", [correlation, diagonal, low_rank])
@pytest.mark.parametrize("n_stocks", [5, 20, 50])
def test_the_decision_is_optimal(n_stocks, matrix, scale, fully_invested):
    rng = np.random.default_rng(n_stocks)
    problem, risk = Portfolio(0.1, fully_invested), matrix(rng, n_stocks)
    y_hats = scale * rng.standard_normal((3, n_stocks))
    for z, y_hat in zip(problem.solve_many(y_hats, risk), y_hats, strict=True):
        assert_feasible(z, problem)
        value = problem.objective(z, y_hat, risk)
        assert value == pytest.approx(optimum(problem, y_hat, risk), abs=1e-6)


@BOTH
def test_the_decision_is_optimal_for_500_stocks(fully_invested):
    rng = np.random.default_rng(0)
    problem, risk = Portfolio(0.1, fully_invested), correlation(rng, 500, n_days=365)
    y_hat = 0.02 * rng.standard_normal(500)
    z = problem.solve(y_hat, risk)
    assert_feasible(z, problem)
    expected = optimum(problem, y_hat, risk)
    assert problem.objective(z, y_hat, risk) == pytest.approx(expected, abs=1e-6)


@BOTH
def test_a_decision_depends_neither_on_its_neighbours_nor_on_order(fully_invested):
    rng = np.random.default_rng(0)
    problem, risk = Portfolio(0.1, fully_invested), correlation(rng, 50)
    y_hats = 0.02 * rng.standard_normal((60, 50))
    together = problem.solve_many(y_hats, risk)
    order = rng.permutation(60)
    np.testing.assert_array_equal(problem.solve_many(y_hats[order], risk), together[order])
    np.testing.assert_array_equal([problem.solve(y_hat, risk) for y_hat in y_hats], together)


def test_the_objective_is_return_less_risk():
    rng = np.random.default_rng(0)
    problem, risk = Portfolio(0.3), correlation(rng, 20)
    zs, y = rng.dirichlet(np.ones(20), size=7), rng.standard_normal(20)
    values = problem.objective_many(zs, y, risk)
    by_sums = [
        sum(z[i] * y[i] for i in range(20))
        - 0.3 * sum(z[i] * risk[i, j] * z[j] for i in range(20) for j in range(20))
        for z in zs
    ]
    np.testing.assert_allclose(values, by_sums, atol=1e-12)
    assert [problem.objective(z, y, risk) for z in zs] == values.tolist()


def test_money_stays_aside_when_every_stock_falls_and_it_may():
    y_hat, risk = np.array([-0.1, -0.2, -0.3]), np.eye(3)
    np.testing.assert_array_equal(Portfolio(fully_invested=False).solve(y_hat, risk), 0)
    assert Portfolio(fully_invested=True).solve(y_hat, risk).sum() == pytest.approx(1)


def test_equal_stocks_get_equal_shares():
    np.testing.assert_allclose(Portfolio().solve(np.full(4, 0.01), np.eye(4)), 0.25, atol=1e-12)


def test_no_prediction_beats_the_label():
    rng = np.random.default_rng(0)
    y, risk = 0.02 * rng.standard_normal(50), correlation(rng, 50)
    y_hats = y + 0.05 * rng.standard_normal((100, 50))
    assert regrets(Portfolio(), y_hats, y, risk).min() >= -1e-12


@BOTH
def test_the_contract_of_a_problem_is_kept(fully_invested):
    rng = np.random.default_rng(0)
    risk = np.stack([correlation(rng, 10) for _ in range(3)])
    check_problem(Portfolio(0.1, fully_invested), 0.02 * rng.standard_normal((3, 10)), context=risk)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_prediction_that_is_not_finite_is_refused(bad):
    y_hats = np.zeros((3, 2))
    y_hats[2, 1] = bad
    with pytest.raises(InvalidInputError, match=rf"`y_hats` must be finite, got {bad} at \(2, 1\)"):
        Portfolio().solve_many(y_hats, np.eye(2))


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (None, r"needs a context: the matrix Q of shape \(2, 2\)"),
        (np.eye(3), r"symmetric matrix of shape \(2, 2\), got shape \(3, 3\)"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "must be a symmetric matrix"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "`context` must be finite"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "Q, must be positive semidefinite"),
        (-np.eye(2), "Q, must be positive semidefinite"),
    ],
)
def test_a_context_that_is_no_risk_matrix_is_refused(context, message):
    with pytest.raises(InvalidInputError, match=message):
        Portfolio().solve(np.zeros(2), context)


@pytest.mark.parametrize("risk_aversion", [0, -0.1, np.nan, np.inf])
def test_risk_aversion_must_be_positive(risk_aversion):
    with pytest.raises(InvalidInputError, match="`risk_aversion` must be a positive number"):
        Portfolio(risk_aversion)


def test_without_daqp_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "daqp", None)
    with pytest.raises(MissingExtraError, match=r"lodl\[portfolio\]"):
        Portfolio().solve(np.zeros(2), np.eye(2))
