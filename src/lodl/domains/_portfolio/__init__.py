"""Portfolio Optimization: data, problem and model shape of the paper's third domain."""

from lodl.domains._portfolio._domain import portfolio
from lodl.domains._portfolio._prices import Prices, synthetic_prices
from lodl.domains._portfolio._problem import Portfolio

__all__ = ["Portfolio", "Prices", "portfolio", "synthetic_prices"]
