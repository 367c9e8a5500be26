"""Daily prices of stocks: the record, and a simulation."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count
from lodl._typing import Array
from lodl.domains._instances import streams
from lodl.errors import DataError

Dates = npt.NDArray[np.datetime64]


@dataclass(frozen=True, eq=False)
class Prices:
    """Closing prices, one for every symbol and day.

    Attributes:
        dates: Days of trade in rising order, shape (n_days,).
        symbols: Names of the stocks.
        close: Positive prices, shape (n_days, n_symbols).
    """

    dates: Dates
    symbols: tuple[str, ...]
    close: Array

    def __post_init__(self) -> None:
        expected = (len(self.dates), len(self.symbols))
        if self.close.shape != expected:
            raise DataError(
                f"`close` must have a row per date and a column per symbol, shape {expected}, "
                f"got {self.close.shape}."
            )
        if not (self.dates[1:] > self.dates[:-1]).all():
            day = int(np.argmin(self.dates[1:] > self.dates[:-1])) + 1
            raise DataError(
                f"`dates` must rise, but {self.dates[day]} follows {self.dates[day - 1]}."
            )
        is_price = (self.close > 0) & np.isfinite(self.close)
        for column in np.flatnonzero(~is_price.all(axis=0)):
            days = np.flatnonzero(~is_price[:, column])
            raise DataError(
                f"Symbol {self.symbols[column]} has no positive price on {self.dates[days[0]]}, "
                f"and so on {len(days)} of {len(self.dates)} days. Every symbol needs a price on "
                "every day: fill the gaps or leave the symbol out."
            )


def synthetic_prices(seed: int = 0, *, n_days: int = 1166, n_symbols: int = 50) -> Prices:
    """Simulate prices by a factor model, for machines without a file of prices.

        r_it = 0.0003 + beta_i market_t + sector_s(i),t + own_it + 0.1 own_i,t-1

    with normal shocks of standard deviation 0.01 (market), 0.008 (each of 10 sectors) and 0.015
    (own), and beta uniform on [0.6, 1.4]: a daily volatility of about 0.02. Only the last term can
    be predicted, a hundredth of a stock's own variance.

    Args:
        seed: Random seed for the simulation.
        n_days: Days to simulate.
        n_symbols: Stocks to simulate.
    """
    check_count("n_days", n_days)
    check_count("n_symbols", n_symbols)
    market_rng, sector_rng, own_rng, stock_rng = streams("synthetic prices", seed, 4)
    beta = stock_rng.uniform(0.6, 1.4, size=n_symbols)
    sector = stock_rng.integers(10, size=n_symbols)
    first_price = stock_rng.uniform(10, 100, size=n_symbols)
    market = 0.01 * market_rng.standard_normal((n_days, 1))
    sectors = 0.008 * sector_rng.standard_normal((n_days, 10))
    own = 0.015 * own_rng.standard_normal((n_days + 1, n_symbols))
    returns = 0.0003 + beta * market + sectors[:, sector] + own[1:] + 0.1 * own[:-1]
    return Prices(
        dates=np.busday_offset(np.datetime64("2004-01-02"), np.arange(n_days), roll="raise"),
        symbols=tuple(f"S{number:03d}" for number in range(n_symbols)),
        close=first_price * np.cumprod(1 + returns, axis=0),
    )
