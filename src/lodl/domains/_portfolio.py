"""The paper's third domain."""

from lodl import datasets
from lodl.datasets import Prices
from lodl.domains._domain import Domain, ModelShape
from lodl.problems import Portfolio


def portfolio(
    seed: int = 0,
    *,
    prices: Prices | None = None,
    sizes: tuple[int, int, int] = (200, 200, 400),
    n_stocks: int = 50,
    risk_aversion: float = 0.1,
    fully_invested: bool = True,
) -> Domain:
    """Portfolio Optimization: spread money over stocks, by their returns of tomorrow.

    Data. An instance is a day of trade with 50 stocks. Of each stock 28 numbers are known: recent
    returns, returns over longer spans, means and variances of returns and prices, the price; the
    label is its return to the next day. The context is Q, the correlation of the last 365 daily
    returns plus 0.1 on the diagonal. Days are in order of time, 200 for training, the next 200 for
    validation, the next 400 for test. Nothing looks ahead: features and Q of a day use that day and
    before, and the features' mean and deviation come from the training days. x has shape
    (n, 50, 28), y has shape (n, 50), the context has shape (n, 50, 50).

    By default prices are simulated (`datasets.synthetic_prices`): one market, ten sectors, a daily
    volatility of 0.02, and next to nothing that can be predicted. Real prices come from any CSV of
    Date, Symbol and Close: `prices=datasets.read_prices(path)`. A file of today's index members
    has survivorship bias: firms that failed are not in it.

    Model. One network for all stocks, from 28 features to a return: two layers with 500 ReLU units
    between, and tanh at the end.

    Solver. The quadratic program by DAQP, exactly (`lodl.problems.Portfolio`).

    Objective. Return less `risk_aversion` times risk, z'y - 0.1 z'Qz, to be maximised. Returns are
    mostly noise, and the risk term alone already asks for a sensible portfolio: compare with a
    model that predicts a constant before you praise another.

    What the paper says, and where we differ. The paper allows sum(z) <= 1, its authors' code
    demands sum(z) = 1, as we do by default (`fully_invested`). Their decisions and their scores use
    different quadratic forms; ours use one. Their Q comes from the days after the instance, though
    the text says historical; ours is historical. Their prices are of QuandlWIKI, which is closed.

    Args:
        seed: Of the choice of stocks, and of the simulated prices.
        prices: Of the stocks; simulated if None.
        sizes: Days in train, validation and test.
        n_stocks: Stocks to draw at random from those in `prices`.
        risk_aversion: The weight of the risk.
        fully_invested: Whether all money must be invested.
    """
    return Domain(
        problem=Portfolio(risk_aversion, fully_invested),
        splits=datasets.portfolio(seed, prices=prices, sizes=sizes, n_stocks=n_stocks),
        model=ModelShape(n_features=28, n_outputs=1, hidden=(500,), output="tanh"),
    )
