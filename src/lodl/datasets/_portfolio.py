"""Stocks, their past, and what they return on the next day."""

import numpy as np

from lodl._typing import Array
from lodl._validation import check_count
from lodl.datasets._instances import Instances, Sizes, Splits, check_sizes, streams
from lodl.datasets._prices import Prices, synthetic_prices
from lodl.datasets._risk import historical_risk
from lodl.datasets._stock_features import HISTORY, stock_features
from lodl.errors import DataError

_MOST_DEVIATIONS = 5.0


def portfolio(
    seed: int = 0,
    *,
    prices: Prices | None = None,
    sizes: Sizes = (200, 200, 400),
    n_stocks: int = 50,
) -> Splits:
    """Turns prices into days, each with features, next day's returns and a risk matrix.

    An instance is a day. Its features (28 a stock) and its risk matrix Q (correlation of the last
    365 returns, plus 0.1 on the diagonal) look at that day and before, its label is the return of
    each stock from that day to the next. The days are the first that have 365 days behind them:
    train, then validation, then test. Features are standardised by the training split and cut off
    at 5 deviations: a price or a variance may drift far beyond what the training days have seen.

    Args:
        seed: Of the choice of stocks, and of the simulated prices.
        prices: `read_prices(path)`; `synthetic_prices(seed)` if None.
        sizes: Days in train, validation and test.
        n_stocks: Stocks to draw at random from those in `prices`.

    Returns:
        x of shape (n, n_stocks, 28), y of shape (n, n_stocks), context Q of shape
        (n, n_stocks, n_stocks).
    """
    sizes = check_sizes(sizes)
    n_days = HISTORY + sum(sizes) + 1
    if prices is None:
        prices = synthetic_prices(seed, n_days=n_days, n_symbols=n_stocks)
    prices = _some_stocks(prices, check_count("n_stocks", n_stocks), seed)
    close = prices.close
    if len(close) < n_days:
        raise DataError(
            f"{n_days} days are needed: {HISTORY} of history, {sum(sizes)} instances and one for "
            f"the last label; the prices have {len(close)}. Ask for fewer with `sizes`."
        )
    days = range(HISTORY, n_days - 1)
    x = _standardised(stock_features(close, days), n_train=sizes[0])
    y = close[days.start + 1 : days.stop + 1] / close[days.start : days.stop] - 1
    risk = historical_risk(prices, days)
    train, validation, test = np.split(np.arange(len(days)), np.cumsum(sizes)[:-1])
    return Splits(*(Instances(x[at], y[at], risk[at]) for at in (train, validation, test)))


def _some_stocks(prices: Prices, n_stocks: int, seed: int) -> Prices:
    """Returns the prices of some stocks drawn without regard to their prices."""
    n_symbols = len(prices.symbols)
    if n_symbols < n_stocks:
        raise DataError(f"{n_stocks} stocks are asked for, the prices have {n_symbols}.")
    (rng,) = streams("portfolio", seed, 1)
    drawn = np.sort(rng.choice(n_symbols, n_stocks, replace=False))
    symbols = tuple(prices.symbols[column] for column in drawn)
    return Prices(prices.dates, symbols, prices.close[:, drawn])


def _standardised(x: Array, n_train: int) -> Array:
    """Brings each feature to mean 0 and deviation 1 over the training days, then cuts it off."""
    mean, deviation = x[:n_train].mean(axis=(0, 1)), x[:n_train].std(axis=(0, 1))
    deviation[deviation == 0] = 1.0
    standardised: Array = (x - mean) / deviation
    return standardised.clip(-_MOST_DEVIATIONS, _MOST_DEVIATIONS)
