import numpy as np
import pytest

from lodl.domains import Prices, synthetic_prices
from lodl.errors import DataError, InvalidInputError

DATES = np.array(["2004-01-02", "2004-01-05", "2004-01-06"], dtype="datetime64[D]")


def test_simulated_returns_look_like_returns():
    prices = synthetic_prices(0, n_days=3000, n_symbols=50)
    returns = prices.close[1:] / prices.close[:-1] - 1
    assert returns.std() == pytest.approx(0.02, abs=0.002)
    correlation = np.corrcoef(returns, rowvar=False)[~np.eye(50, dtype=bool)]
    assert 0.1 < correlation.mean() < 0.5


def test_simulated_returns_can_be_predicted_weakly():
    prices = synthetic_prices(0, n_days=3000, n_symbols=50)
    returns = prices.close[1:] / prices.close[:-1] - 1
    own = returns - returns.mean(axis=1, keepdims=True)
    r = np.corrcoef(own[:-1].ravel(), own[1:].ravel())[0, 1]
    assert 0.02 < r < 0.12


def test_simulated_dates_are_weekdays_in_rising_order():
    dates = synthetic_prices(n_days=100, n_symbols=2).dates
    assert np.is_busday(dates).all()
    assert (np.diff(dates) > np.timedelta64(0)).all()


def test_simulated_prices_are_set_by_their_seed():
    np.testing.assert_array_equal(synthetic_prices(1).close, synthetic_prices(1).close)
    assert not np.array_equal(synthetic_prices(1).close, synthetic_prices(2).close)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_a_price_that_is_none_is_refused_by_symbol_and_day(bad):
    close = np.ones((3, 2))
    close[1, 1] = bad
    with pytest.raises(DataError, match="Symbol B has no positive price on 2004-01-05"):
        Prices(DATES, ("A", "B"), close)


def test_dates_out_of_order_are_refused():
    with pytest.raises(DataError, match="`dates` must rise, but 2004-01-05 follows 2004-01-06"):
        Prices(DATES[[0, 2, 1]], ("A",), np.ones((3, 1)))


def test_a_date_that_comes_twice_is_refused():
    with pytest.raises(DataError, match="`dates` must rise, but 2004-01-05 follows 2004-01-05"):
        Prices(DATES[[0, 1, 1]], ("A",), np.ones((3, 1)))


def test_a_table_of_another_shape_is_refused():
    with pytest.raises(DataError, match=r"shape \(3, 1\), got \(3, 2\)"):
        Prices(DATES, ("A",), np.ones((3, 2)))


@pytest.mark.parametrize("name", ["n_days", "n_symbols"])
def test_counts_must_be_positive(name):
    with pytest.raises(InvalidInputError, match=f"`{name}` must be a whole number"):
        synthetic_prices(**{name: 0})
