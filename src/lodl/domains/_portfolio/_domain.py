"""The domain: days of trade, next day's returns, and the shape of the model."""

import numpy as np

from lodl._arrays import check_count
from lodl._typing import Array
from lodl.domains._domain import Domain, ModelShape
from lodl.domains._instances import Instances, Sizes, Splits, check_sizes, split_in_order, streams
from lodl.domains._portfolio._prices import Prices, synthetic_prices
from lodl.domains._portfolio._problem import Portfolio
from lodl.domains._portfolio._risk import historical_risk
from lodl.domains._portfolio._stock_features import HISTORY, stock_features
from lodl.errors import DataError

_MOST_DEVIATIONS = 5.0


def portfolio(
    seed: int = 0,
    *,
    prices: Prices | None = None,
    sizes: Sizes = (200, 200, 400),
    n_stocks: int = 50,
    risk_aversion: float = 0.1,
    fully_invested: bool = True,
) -> Domain:
    """Portfolio Optimization: spread money over stocks, by their predicted returns of tomorrow.

    Data. An instance is a day of trade with 50 stocks. 28 numbers are known about each stock:
    recent returns, returns over longer spans, means and variances of returns and prices, the price.
    The label is its return to the next day. The context is Q, the correlation of the last 365 daily
    returns plus 0.1 on the diagonal. Days are in order of time, the first 200 that have 365 days
    before them for training, the next 200 for validation, the next 400 for test. Nothing looks
    ahead: features and Q of a day use that day and those before it. Features are standardised by
    the training days and clipped at 5 deviations, as a price or a variance may drift far beyond
    what the training days have seen. x has shape (n, 50, 28), y has shape (n, 50), the context has
    shape (n, 50, 50).

    By default prices are simulated (`synthetic_prices`): one market, ten sectors, a daily
    volatility of 0.02, and next to nothing that can be predicted. Pass real ones as `prices`. Those
    of today's index members have survivorship bias: firms that failed are not among them.

    Model. One network for all stocks, from 28 features to a return: two layers with 500 ReLU units
    between them, and tanh at the end.

    Solver. `Portfolio`: the quadratic program, solved exactly by DAQP.

    Objective. Return less `risk_aversion` times risk, z'y - 0.1 z'Qz, to be maximised. Returns are
    mostly noise, and the risk term alone already asks for a sensible portfolio: compare with a
    model that predicts a constant before you praise another.

    What the paper says, and where we differ. The paper allows sum(z) <= 1, its authors' code
    requires sum(z) = 1, as we do by default (`fully_invested`). Their decisions and their scores
    use different quadratic forms; ours use one. Their Q comes from the days after the instance,
    though the text says historical; ours is historical. Their prices are those of QuandlWIKI, which
    is closed.

    Args:
        seed: Random seed for the choice of stocks and for the simulated prices.
        prices: Daily prices of at least `n_stocks` stocks; simulated if None.
        sizes: Number of training, validation and test days.
        n_stocks: Stocks to draw at random from those in `prices`.
        risk_aversion: Weight of the risk.
        fully_invested: Whether all money must be invested.
    """
    sizes = check_sizes(sizes)
    check_count("n_stocks", n_stocks)
    if prices is None:
        n_days = HISTORY + sum(sizes) + 1
        prices = synthetic_prices(seed, n_days=n_days, n_symbols=n_stocks)
    return Domain(
        problem=Portfolio(risk_aversion, fully_invested),
        splits=_splits(_some_stocks(prices, n_stocks, seed), sizes),
        model=ModelShape(n_features=28, n_outputs=1, hidden=(500,), output="tanh"),
    )


def _splits(prices: Prices, sizes: Sizes) -> Splits:
    """Return the first days that have enough history, in order of time."""
    close, n_days = prices.close, HISTORY + sum(sizes) + 1
    if len(close) < n_days:
        raise DataError(
            f"{n_days} days are needed: {HISTORY} of history, {sum(sizes)} instances and one for "
            f"the last label; the prices have {len(close)}. Ask for fewer with `sizes`."
        )
    days = range(HISTORY, n_days - 1)
    x = _standardised(stock_features(close, days), n_train=sizes[0])
    y = close[days.start + 1 : days.stop + 1] / close[days.start : days.stop] - 1
    risk = historical_risk(prices, days)
    return split_in_order(Instances(x, y, risk), sizes)


def _some_stocks(prices: Prices, n_stocks: int, seed: int) -> Prices:
    """Return the prices of `n_stocks` stocks, drawn at random."""
    n_symbols = len(prices.symbols)
    if n_symbols < n_stocks:
        raise DataError(f"{n_stocks} stocks are asked for, the prices have {n_symbols}.")
    (rng,) = streams("portfolio", seed, 1)
    drawn = np.sort(rng.choice(n_symbols, n_stocks, replace=False))
    symbols = tuple(prices.symbols[column] for column in drawn)
    return Prices(prices.dates, symbols, prices.close[:, drawn])


def _standardised(x: Array, n_train: int) -> Array:
    """Bring each feature to mean 0 and deviation 1 over the training days, then clip it."""
    mean, deviation = x[:n_train].mean(axis=(0, 1)), x[:n_train].std(axis=(0, 1))
    deviation[deviation == 0] = 1.0
    standardised: Array = (x - mean) / deviation
    return standardised.clip(-_MOST_DEVIATIONS, _MOST_DEVIATIONS)
