import cvxpy as cp
import numpy as np
import pytest

from lodl.errors import DataError, InvalidInputError
from lodl.oracle import Oracle
from lodl.testing import check_problem
from lodl_benchmarks.domains import Portfolio, portfolio, synthetic_prices
from lodl_benchmarks.domains._portfolio import stock_features


def test_simulated_returns_look_like_returns():
    prices = synthetic_prices(0, n_days=3000, n_stocks=50)
    returns = prices[1:] / prices[:-1] - 1
    assert returns.std() == pytest.approx(0.02, abs=0.002)
    correlation = np.asarray(np.corrcoef(returns, rowvar=False))[~np.eye(50, dtype=bool)]
    assert 0.1 < correlation.mean() < 0.5


def test_simulated_returns_can_be_predicted_weakly():
    prices = synthetic_prices(0, n_days=3000, n_stocks=50)
    returns = prices[1:] / prices[:-1] - 1
    own = returns - returns.mean(axis=1, keepdims=True)
    r = np.corrcoef(own[:-1].ravel(), own[1:].ravel())[0, 1]
    assert 0.02 < r < 0.12


def test_simulated_prices_are_set_by_their_seed():
    np.testing.assert_array_equal(synthetic_prices(1), synthetic_prices(1))
    assert not np.array_equal(synthetic_prices(1), synthetic_prices(2))


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_a_price_that_is_none_is_refused_by_its_place(prices, bad):
    close = prices.copy()
    close[3, 1] = bad
    with pytest.raises(
        DataError, match=rf"`prices` must be positive, got {bad} in row 3, column 1"
    ):
        portfolio(prices=close, sizes=SIZES, n_stocks=4)


@pytest.mark.parametrize("name", ["n_days", "n_stocks"])
def test_counts_must_be_positive(name):
    with pytest.raises(InvalidInputError, match=f"`{name}` must be a whole number"):
        synthetic_prices(**{name: 0})


SIZES = (20, 15, 25)
N_DAYS = 365 + sum(SIZES) + 1


@pytest.fixture(scope="module")
def prices():
    return synthetic_prices(0, n_days=500, n_stocks=8)


def parts(splits):
    return [splits.train, splits.validation, splits.test]


def test_features_are_those_of_the_paper_computed_one_by_one(prices):
    days = range(380, 400)
    features = stock_features(prices, days)
    for day, stock in [(380, 0), (391, 5), (399, 7)]:
        close = prices[: day + 1, stock].tolist()

        def change(ago, over, close=close):
            return close[-1 - ago] / close[-1 - ago - over] - 1

        week = [change(ago, 1) for ago in range(7)]
        expected = [change(ago, 1) for ago in range(11)]
        expected += [change(0, over) for over in (365, 120, 30, 7)]
        expected += [sum(week) / 7, sum((r - sum(week) / 7) ** 2 for r in week) / 7]
        for width in (365, 120, 30, 7, 3):
            window = close[-width:]
            mean = sum(window) / width
            expected += [mean, sum((p - mean) ** 2 for p in window) / width]
        expected.append(close[-1])
        np.testing.assert_allclose(features[day - 380, stock], expected, rtol=1e-9)


def test_labels_are_the_returns_to_the_next_day(prices):
    splits = portfolio(prices=prices, sizes=SIZES, n_stocks=8).splits
    y = np.concatenate([part.y for part in parts(splits)])
    for number, day in enumerate(range(365, N_DAYS - 1)):
        expected = (prices[day + 1] - prices[day]) / prices[day]
        np.testing.assert_allclose(y[number], expected, atol=1e-12)


def test_the_risk_is_the_correlation_of_the_last_365_returns(prices):
    splits = portfolio(prices=prices, sizes=SIZES, n_stocks=8).splits
    returns = prices[1:] / prices[:-1] - 1
    day = 365 + 20 + 3  # the fourth of validation
    r = returns[day - 365 : day]
    r = (r - r.mean(axis=0)) / r.std(axis=0)
    expected = sum(np.outer(row, row) for row in r) / 365 + 0.1 * np.eye(8)
    np.testing.assert_allclose(splits.validation.context[3], expected, atol=1e-12)


def test_the_risk_is_positive_definite_even_for_more_stocks_than_days():
    splits = portfolio(sizes=(1, 1, 1), n_stocks=400).splits
    assert np.linalg.eigvalsh(splits.train.context[0]).min() >= 0.1 - 1e-9


def test_training_features_are_standardised_and_cut_off_at_five_deviations(prices):
    splits = portfolio(prices=prices, sizes=SIZES, n_stocks=8).splits
    x = splits.train.x
    whole = np.abs(x).max(axis=(0, 1)) < 5
    assert whole.sum() >= 20
    np.testing.assert_allclose(x.mean(axis=(0, 1))[whole], 0, atol=1e-9)
    np.testing.assert_allclose(x.std(axis=(0, 1))[whole], 1, atol=1e-9)
    assert max(np.abs(part.x).max() for part in parts(splits)) == 5


@pytest.mark.parametrize("n_known", [365 + 5, 365 + 20, 365 + 20 + 15, 365 + 59])
def test_changing_the_future_changes_nothing_before_it(prices, n_known):
    """Prices after day `n_known - 1` are other ones; all that is known by then stays."""
    close = prices.copy()
    close[n_known:] *= np.random.default_rng(0).uniform(0.5, 2.0, size=close[n_known:].shape)
    changed = close
    before = portfolio(prices=prices, sizes=SIZES, n_stocks=4).splits
    after = portfolio(prices=changed, sizes=SIZES, n_stocks=4).splits
    # Up to the end of training its own days set the scale, so compare only from there on.
    if n_known >= 365 + SIZES[0]:
        _assert_equal_up_to(n_known - 365, "x", before, after)
    _assert_equal_up_to(n_known - 365, "context", before, after)
    _assert_equal_up_to(n_known - 365 - 1, "y", before, after)
    assert not np.array_equal(after.test.y, before.test.y)


def _assert_equal_up_to(n_days, field, before, after):
    old, new = (np.concatenate([getattr(p, field) for p in parts(s)]) for s in (before, after))
    np.testing.assert_array_equal(new[:n_days], old[:n_days])
    if field != "y":
        assert not np.array_equal(new[n_days:], old[n_days:])


def test_features_before_scaling_do_not_look_ahead_within_training(prices):
    close = prices.copy()
    close[380:] *= 3
    days = range(365, 400)
    before, after = stock_features(prices, days), stock_features(close, days)
    np.testing.assert_array_equal(after[:15], before[:15])


def test_more_days_at_the_end_change_no_split(prices):
    short = prices[:N_DAYS]
    from_short = portfolio(prices=short, sizes=SIZES, n_stocks=4).splits
    from_long = portfolio(prices=prices, sizes=SIZES, n_stocks=4).splits
    for old, new in zip(parts(from_short), parts(from_long), strict=True):
        np.testing.assert_array_equal(new.x, old.x)
        np.testing.assert_array_equal(new.y, old.y)
        np.testing.assert_array_equal(new.context, old.context)


def test_the_choice_of_stocks_depends_on_the_seed_and_not_on_prices(prices):
    def chosen(seed, close):
        other = close
        return portfolio(seed, prices=other, sizes=SIZES, n_stocks=3).splits.train.y

    constant_factors = prices * np.arange(1, 9)  # returns stay
    np.testing.assert_allclose(chosen(1, prices), chosen(1, constant_factors), atol=1e-12)
    assert any(not np.array_equal(chosen(0, prices), chosen(seed, prices)) for seed in range(1, 4))


def test_too_few_days_are_refused(prices):
    short = prices[: N_DAYS - 1]
    with pytest.raises(
        DataError, match=f"{N_DAYS} days are needed: 365 of history, one per instance"
    ):
        portfolio(prices=short, sizes=SIZES, n_stocks=4)


def test_too_few_stocks_are_refused(prices):
    with pytest.raises(DataError, match="`n_stocks` is 50, but `prices` has 8"):
        portfolio(prices=prices, sizes=SIZES)


def test_a_stock_whose_price_stands_still_is_refused_by_name(prices):
    close = prices.copy()
    close[:, 2] = 7.0
    still = close
    with pytest.raises(DataError, match="The return in column 2 of `prices` does not change"):
        portfolio(prices=still, sizes=SIZES, n_stocks=8)


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
    message = rf"`y_hats` must be finite, got {bad} in row 2, column 1\."
    with pytest.raises(InvalidInputError, match=message):
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
