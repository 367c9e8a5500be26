"""Portfolio Optimization: invest for return less risk. The paper's third domain."""

from dataclasses import dataclass
from typing import Any

import daqp
import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from lodl._arrays import check_count, check_labels
from lodl._threads import one_blas_thread
from lodl._typing import Array, InstanceContext
from lodl.domains._domain import Domain, Sizes, check_sizes
from lodl.errors import DataError, InvalidInputError, ProblemError
from lodl.problems import VectorisedProblem
from lodl_benchmarks.domains._streams import streams

_HISTORY = 365  # days of trade needed before the first day that has features
_RETURN_HORIZONS = (365, 120, 30, 7)  # days
_PRICE_WINDOWS = (365, 120, 30, 7, 3)  # days
_RETURN_WINDOW = 7  # days
_N_LAGS = 10  # daily returns before the last
_MAX_DEVIATIONS = 5.0  # standardised features are clipped there
_RIDGE = 0.1  # added to the diagonal of Q, which is then positive definite

_EQUALITY = 5  # DAQP's code of a constraint that holds with equality
_AT_LOWER_BOUND = 3  # DAQP's code of a constraint that is active, at its lower bound, at the start
_N_STARTING_STOCKS = 10  # stocks that a solve starts from
_PRIMAL_TOLERANCE = 1e-9


def portfolio(
    seed: int = 0,
    *,
    prices: Array | None = None,
    sizes: Sizes = (200, 200, 400),
    n_stocks: int = 50,
) -> Domain:
    """Portfolio Optimization: spread money over stocks, by their predicted returns of tomorrow.

    Data: an instance is a day of trade with 50 stocks. 28 numbers are known about each stock:
    recent returns, returns over longer spans, means and variances of returns and prices, the price.
    The label is its return to the next day. The context is Q, the correlation of the last 365 daily
    returns plus 0.1 on the diagonal. Days are in order of time, and features and Q of a day use
    that day and earlier days only. Features are standardised by the training days and clipped at 5
    deviations. x has shape (n, 50, 28), y has shape (n, 50), the context has shape (n, 50, 50).

    Model: one network for all stocks, from 28 features to a return, with 500 ReLU units and tanh at
    the end. Problem: `Portfolio`. Returns are mostly noise: compare with a model that predicts a
    constant before you praise another.

    Differences from the paper: it allows sum(z) <= 1, its authors' code requires sum(z) = 1, as we
    do. Their decisions and their scores use different quadratic forms, their Q comes from the days
    after the instance, and their prices from QuandlWIKI, which is closed.

    Args:
        seed: Random seed for the choice of stocks and for the simulated prices.
        prices: Daily prices, shape (n_days, n_symbols). Defaults to `synthetic_prices(seed)`.
        sizes: Number of training, validation and test days.
        n_stocks: Stocks to draw at random from `prices`.
    """
    sizes, n_days = check_sizes(sizes), _HISTORY + sum(sizes) + 1
    check_count("n_stocks", n_stocks)
    if prices is None:
        prices = synthetic_prices(seed, n_days=n_days, n_stocks=n_stocks)
    _check_prices(prices, n_days, n_stocks)
    (rng,) = streams("portfolio", seed, 1)
    drawn = np.sort(rng.choice(prices.shape[1], n_stocks, replace=False))
    close = prices[:, drawn]
    days = range(_HISTORY, n_days - 1)
    x = stock_features(close, days)
    mean, deviation = x[: sizes[0]].mean(axis=(0, 1)), x[: sizes[0]].std(axis=(0, 1))
    deviation[deviation == 0] = 1.0
    x = ((x - mean) / deviation).clip(-_MAX_DEVIATIONS, _MAX_DEVIATIONS)
    y = close[days.start + 1 : days.stop + 1] / close[days.start : days.stop] - 1
    risk = _historical_risk(prices, drawn, days)
    return Domain.in_order(Portfolio(), sizes, x, y, risk)


def _check_prices(prices: Array, n_days: int, n_stocks: int) -> None:
    is_price = (prices > 0) & np.isfinite(prices)
    if not is_price.all():
        day, column = np.argwhere(~is_price)[0]
        got = f"{prices[day, column]} in row {day}, column {column}"
        advice = "fill the gap or leave the stock out"
        raise DataError(f"`prices` must be positive, got {got}: {advice}.")
    if prices.shape[1] < n_stocks:
        raise DataError(f"`n_stocks` is {n_stocks}, but `prices` has {prices.shape[1]} stocks.")
    if len(prices) < n_days:
        needed = f"{_HISTORY} of history, one per instance and one for the last label"
        got = f"`prices` has {len(prices)}. Use fewer instances: `sizes`."
        raise DataError(f"{n_days} days are needed: {needed}; {got}")


def synthetic_prices(seed: int = 0, *, n_days: int = 1166, n_stocks: int = 50) -> Array:
    """Simulate daily prices of stocks by a factor model, shape (n_days, n_stocks).

        r_it = 0.0003 + beta_i market_t + sector_s(i),t + own_it + 0.1 own_i,t-1

    with normal shocks of standard deviation 0.01 (market), 0.008 (each of 10 sectors) and 0.015
    (own), and beta uniform on [0.6, 1.4]. Only the last term can be predicted.
    """
    n_days, n_stocks = check_count("n_days", n_days), check_count("n_stocks", n_stocks)
    market_rng, sector_rng, own_rng, stock_rng = streams("synthetic prices", seed, 4)
    beta = stock_rng.uniform(0.6, 1.4, size=n_stocks)
    sector = stock_rng.integers(10, size=n_stocks)
    first_price = stock_rng.uniform(10, 100, size=n_stocks)
    market = 0.01 * market_rng.standard_normal((n_days, 1))
    sectors = 0.008 * sector_rng.standard_normal((n_days, 10))
    own = 0.015 * own_rng.standard_normal((n_days + 1, n_stocks))
    returns = 0.0003 + beta * market + sectors[:, sector] + own[1:] + 0.1 * own[:-1]
    return np.asarray(first_price * np.cumprod(1 + returns, axis=0))


def stock_features(close: Array, days: range) -> Array:
    """Return the paper's 28 features of each stock on each day, shape (len(days), n_stocks, 28).

    In order: the returns of the last 11 days; over 365, 120, 30 and 7 days; mean and variance of
    the last 7 returns; of the price over 365, 120, 30, 7 and 3 days; the price.
    """
    return np.stack([_features_of_stock(series, days) for series in close.T], axis=1)


def _features_of_stock(close: Array, days: range) -> Array:
    """Return the features of one series of prices, shape (len(days), 28)."""
    returns = [_return_over(1, close, days, lag) for lag in range(_N_LAGS + 1)]
    horizons = [_return_over(horizon, close, days) for horizon in _RETURN_HORIZONS]
    daily = np.concatenate([[np.nan], close[1:] / close[:-1] - 1])
    moments = _rolling_moments(daily, days, _RETURN_WINDOW)
    for width in _PRICE_WINDOWS:
        moments += _rolling_moments(close, days, width)
    return np.stack([*returns, *horizons, *moments, close[days.start : days.stop]], axis=1)


def _return_over(horizon: int, close: Array, days: range, lag: int = 0) -> Array:
    """Return the relative change over `horizon` days that ends `lag` days before each day."""
    now = close[days.start - lag : days.stop - lag]
    before = close[days.start - lag - horizon : days.stop - lag - horizon]
    return now / before - 1


def _rolling_moments(series: Array, days: range, width: int) -> list[Array]:
    """Return mean and variance over the `width` days that end on each day."""
    windows = sliding_window_view(series[days.start - width + 1 : days.stop], width)
    return [windows.mean(axis=1), windows.var(axis=1)]


def _historical_risk(prices: Array, drawn: npt.NDArray[np.intp], days: range) -> Array:
    """Return Q of each day, from the daily returns that end on it, shape (len(days), n, n)."""
    returns = prices[1:, drawn] / prices[:-1, drawn] - 1  # row t - 1 is the return of day t
    diagonal = _RIDGE * np.eye(len(drawn))
    risk = np.empty((len(days), *diagonal.shape))
    with one_blas_thread():  # many small products: threads would cost more than they gain
        for row, day in enumerate(days):
            window = returns[day - _HISTORY : day]
            still = np.ptp(window, axis=0) == 0
            if still.any():
                column = f"The return in column {drawn[still.argmax()]} of `prices`"
                span = f"in the {_HISTORY} days to day {day}"
                advice = "so it has no correlation: leave it out"
                raise DataError(f"{column} does not change {span}, {advice}.")
            risk[row] = np.corrcoef(window, rowvar=False) + diagonal
    return risk


@dataclass(frozen=True)
class Portfolio(VectorisedProblem):
    """Spread money over N stocks for the most return less risk (Markowitz).

        max_z  z'y - risk_aversion z'Qz,   z >= 0,   sum_i z_i = 1   (or <= 1)

    A label is a vector (N,) of returns, a decision a vector (N,) of shares, the context of an
    instance its positive semidefinite matrix Q, shape (N, N). Solved exactly by DAQP, a dual
    active-set method for small dense quadratic programs.
    """

    risk_aversion: float = 0.1  #: Weight of the risk, positive; the paper's lambda.
    fully_invested: bool = True  #: Whether all money must be invested.
    sense = "max"

    def __post_init__(self) -> None:
        if not 0 < self.risk_aversion < np.inf:
            got = repr(self.risk_aversion)
            raise InvalidInputError(f"`risk_aversion` must be a positive number, got {got}.")

    def solve_many(self, y_hats: Array, context: InstanceContext) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        solver, constraint_types = self._solver(_check_risk(context, y_hats))
        zs = np.empty(y_hats.shape)
        starts = _starts(y_hats, constraint_types)
        for row, (y_hat, start) in enumerate(zip(y_hats, starts, strict=True)):
            # Each solve starts from its own prediction: no decision depends on the last one.
            solver.update(f=-y_hat, sense=start)
            z, _, flag, _ = solver.solve()
            if flag <= 0:
                raise ProblemError(
                    f"DAQP found no optimum for prediction {row} (its exit flag is {flag}). "
                    "Is the context Q positive semidefinite, and are all numbers of a similar size?"
                )
            zs[row] = z
        return zs.clip(min=0.0)  # rounding leaves shares of -1e-16

    def objective_many(self, zs: Any, y: Array, context: InstanceContext) -> Array:
        zs = np.ascontiguousarray(zs, dtype=np.float64)
        # One product per row: a single matrix product may round by the number of rows.
        risk = (zs * (zs[:, np.newaxis] @ context)[:, 0]).sum(axis=1)
        return np.asarray((zs * y).sum(axis=1) - self.risk_aversion * risk)

    def slope(self, z: Any, y: Array, context: InstanceContext) -> Array:
        return np.asarray(z, dtype=np.float64)  # the risk does not depend on the label

    def _solver(self, risk: Array) -> tuple[Any, Any]:
        """Return DAQP set up for one instance, and the types of its constraints."""
        n_stocks = len(risk)
        most, least = np.full(n_stocks + 1, np.inf), np.zeros(n_stocks + 1)
        most[-1], least[-1] = 1.0, 1.0 if self.fully_invested else -np.inf  # the last is the sum
        constraint_types = np.zeros(n_stocks + 1, dtype=np.int32)
        constraint_types[-1] = _EQUALITY if self.fully_invested else 0
        solver = daqp.Model()
        costs, row = np.zeros(n_stocks), np.ones((1, n_stocks))
        quadratic = 2 * self.risk_aversion * risk
        flag, _ = solver.setup(quadratic, costs, row, most, least, constraint_types)
        if flag < 0:
            wanted = f"positive semidefinite (DAQP's exit flag is {flag})"
            raise InvalidInputError(f"The context of a portfolio, Q, must be {wanted}.")
        solver.settings = {"primal_tol": _PRIMAL_TOLERANCE}
        return solver, constraint_types


def _starts(y_hats: Array, constraint_types: Any) -> Any:
    """Return the start of each solve: only the stocks with the highest predictions are bought."""
    starts = np.tile(constraint_types, (len(y_hats), 1))
    if y_hats.shape[1] > _N_STARTING_STOCKS:  # otherwise a step for each stock that is left out
        left_out = np.argpartition(y_hats, -_N_STARTING_STOCKS)[:, :-_N_STARTING_STOCKS]
        np.put_along_axis(starts, left_out, _AT_LOWER_BOUND, axis=1)
    return starts


def _check_risk(context: InstanceContext, y_hats: Array) -> Array:
    """Return the matrix Q, or raise an error that says what is wrong with it."""
    shape = 2 * y_hats.shape[1:]
    if context is None:
        raise InvalidInputError(f"A portfolio needs a context: the matrix Q of shape {shape}.")
    risk = check_labels(context, "context")
    if risk.shape != shape or not np.allclose(risk, risk.T):
        wanted = f"a symmetric matrix of shape {shape}, got shape {risk.shape}"
        raise InvalidInputError(f"The context of a portfolio, Q, must be {wanted}.")
    return risk
