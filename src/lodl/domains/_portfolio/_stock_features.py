"""What is known about a stock on the evening of a day."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from lodl._typing import Array

HISTORY = 365
"""Days of trade needed before the first day that has features."""

N_LAGS = 10
RETURN_HORIZONS = (365, 120, 30, 7)
PRICE_WINDOWS = (365, 120, 30, 7, 3)
RETURN_WINDOW = 7


def stock_features(close: Array, days: range) -> Array:
    """Return the paper's 28 features of each stock on each day.

    In order: the return of the day and of the 10 days before; the returns over 365, 120, 30 and 7
    days; mean and variance of the last 7 returns; mean and variance of the price over 365, 120,
    30, 7 and 3 days; the price. All windows end on the day itself.

    Args:
        close: Prices, shape (n_days, n_stocks).
        days: Consecutive rows of `close`, from HISTORY on.

    Returns:
        Features, not standardised, of shape (len(days), n_stocks, 28).
    """
    return np.stack([_features_of_stock(series, days) for series in close.T], axis=1)


def _features_of_stock(close: Array, days: range) -> Array:
    """Return the features of one series of prices, shape (len(days), 28)."""
    returns = [_return_over(1, close, days, lag) for lag in range(N_LAGS + 1)]
    horizons = [_return_over(horizon, close, days) for horizon in RETURN_HORIZONS]
    daily = np.concatenate([[np.nan], close[1:] / close[:-1] - 1])
    moments = _rolling_moments(daily, days, RETURN_WINDOW)
    for width in PRICE_WINDOWS:
        moments += _rolling_moments(close, days, width)
    price = close[days.start : days.stop]
    return np.stack([*returns, *horizons, *moments, price], axis=1)


def _return_over(horizon: int, close: Array, days: range, lag: int = 0) -> Array:
    """Return the relative change over `horizon` days that ends `lag` days before each day."""
    now = close[days.start - lag : days.stop - lag]
    before = close[days.start - lag - horizon : days.stop - lag - horizon]
    return now / before - 1


def _rolling_moments(series: Array, days: range, width: int) -> list[Array]:
    """Return mean and variance over the `width` days that end on each day."""
    windows = sliding_window_view(series[days.start - width + 1 : days.stop], width)
    return [windows.mean(axis=1), windows.var(axis=1)]
