"""The risk matrix of a day, from the returns before it."""

import numpy as np

from lodl._threads import one_blas_thread
from lodl._typing import Array
from lodl.domains._portfolio._prices import Prices
from lodl.domains._portfolio._stock_features import HISTORY
from lodl.errors import DataError


def historical_risk(prices: Prices, days: range, *, ridge: float = 0.1) -> Array:
    """Return for each day the correlation of past returns, plus `ridge` on the diagonal.

    Args:
        prices: Daily prices of the stocks.
        days: Consecutive rows of the prices, from HISTORY on.
        ridge: Added to the diagonal, so that the matrix is positive definite.

    Returns:
        One matrix per day, from the HISTORY returns that end on it, shape (len(days), n, n).
    """
    returns = prices.close[1:] / prices.close[:-1] - 1  # row t - 1 is the return of day t
    diagonal = ridge * np.eye(len(prices.symbols))
    risk = np.empty((len(days), *diagonal.shape))
    with one_blas_thread():  # many small products: threads would cost more than they gain
        for row, day in enumerate(days):
            window = returns[day - HISTORY : day]
            _check_moves(window, prices, day)
            risk[row] = np.corrcoef(window, rowvar=False) + diagonal
    return risk


def _check_moves(window: Array, prices: Prices, day: int) -> None:
    """Check that every return varies: otherwise its correlation is not defined."""
    still = np.ptp(window, axis=0) == 0
    if still.any():
        raise DataError(
            f"The return of symbol {prices.symbols[int(still.argmax())]} does not change in the "
            f"{HISTORY} days to {prices.dates[day]}, so it has no correlation: leave it out."
        )
