import numpy as np
import pytest

from lodl.domains import Prices, portfolio, synthetic_prices
from lodl.domains._portfolio._stock_features import stock_features
from lodl.errors import DataError

SIZES = (20, 15, 25)
N_DAYS = 365 + sum(SIZES) + 1


@pytest.fixture(scope="module")
def prices():
    return synthetic_prices(0, n_days=500, n_symbols=8)


def parts(splits):
    return [splits.train, splits.validation, splits.test]


def test_features_are_those_of_the_paper_computed_one_by_one(prices):
    days = range(380, 400)
    features = stock_features(prices.close, days)
    for day, stock in [(380, 0), (391, 5), (399, 7)]:
        close = prices.close[: day + 1, stock].tolist()

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
        expected = (prices.close[day + 1] - prices.close[day]) / prices.close[day]
        np.testing.assert_allclose(y[number], expected, atol=1e-12)


def test_the_risk_is_the_correlation_of_the_last_365_returns(prices):
    splits = portfolio(prices=prices, sizes=SIZES, n_stocks=8).splits
    returns = prices.close[1:] / prices.close[:-1] - 1
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
    close = prices.close.copy()
    close[n_known:] *= np.random.default_rng(0).uniform(0.5, 2.0, size=close[n_known:].shape)
    changed = Prices(prices.dates, prices.symbols, close)
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
    close = prices.close.copy()
    close[380:] *= 3
    days = range(365, 400)
    before, after = stock_features(prices.close, days), stock_features(close, days)
    np.testing.assert_array_equal(after[:15], before[:15])


def test_more_days_at_the_end_change_no_split(prices):
    short = Prices(prices.dates[:N_DAYS], prices.symbols, prices.close[:N_DAYS])
    from_short = portfolio(prices=short, sizes=SIZES, n_stocks=4).splits
    from_long = portfolio(prices=prices, sizes=SIZES, n_stocks=4).splits
    for old, new in zip(parts(from_short), parts(from_long), strict=True):
        np.testing.assert_array_equal(new.x, old.x)
        np.testing.assert_array_equal(new.y, old.y)
        np.testing.assert_array_equal(new.context, old.context)


def test_the_choice_of_stocks_depends_on_the_seed_and_not_on_prices(prices):
    def chosen(seed, close):
        other = Prices(prices.dates, prices.symbols, close)
        return portfolio(seed, prices=other, sizes=SIZES, n_stocks=3).splits.train.y

    constant_factors = prices.close * np.arange(1, 9)  # returns stay
    np.testing.assert_allclose(chosen(1, prices.close), chosen(1, constant_factors), atol=1e-12)
    assert any(
        not np.array_equal(chosen(0, prices.close), chosen(seed, prices.close))
        for seed in range(1, 4)
    )


def test_too_few_days_are_refused(prices):
    short = Prices(prices.dates[: N_DAYS - 1], prices.symbols, prices.close[: N_DAYS - 1])
    with pytest.raises(DataError, match=f"{N_DAYS} days are needed: 365 of history, 60 instances"):
        portfolio(prices=short, sizes=SIZES, n_stocks=4)


def test_too_few_stocks_are_refused(prices):
    with pytest.raises(DataError, match="50 stocks are asked for, the prices have 8"):
        portfolio(prices=prices, sizes=SIZES)


def test_a_stock_whose_price_stands_still_is_refused_by_name(prices):
    close = prices.close.copy()
    close[:, 2] = 7.0
    still = Prices(prices.dates, prices.symbols, close)
    with pytest.raises(DataError, match="The return of symbol S002 does not change"):
        portfolio(prices=still, sizes=SIZES, n_stocks=8)
