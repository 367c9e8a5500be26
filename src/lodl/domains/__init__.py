"""Ready problems with data: each domain is a function that returns a `Domain`.

`DOMAINS` lists them by name, and `load` makes one of them. A domain's own names (its problem, its
sources of data) stand beside it.
"""

from lodl.domains._domain import Domain, ModelShape
from lodl.domains._instances import Instances, Splits
from lodl.domains._knapsack import Knapsack, item_knapsack, knapsack
from lodl.domains._linear_model import TopK, linear_model
from lodl.domains._newsvendor import Newsvendor, newsvendor
from lodl.domains._portfolio import Portfolio, Prices, portfolio, synthetic_prices
from lodl.domains._shortest_path import ShortestPath, shortest_path
from lodl.domains._table import DOMAINS, load
from lodl.domains._web_advertising import (
    ClickRates,
    Crop,
    GeneratedClickRates,
    WebAdvertising,
    web_advertising,
)

__all__ = [
    "DOMAINS",
    "ClickRates",
    "Crop",
    "Domain",
    "GeneratedClickRates",
    "Instances",
    "Knapsack",
    "ModelShape",
    "Newsvendor",
    "Portfolio",
    "Prices",
    "ShortestPath",
    "Splits",
    "TopK",
    "WebAdvertising",
    "item_knapsack",
    "knapsack",
    "linear_model",
    "load",
    "newsvendor",
    "portfolio",
    "shortest_path",
    "synthetic_prices",
    "web_advertising",
]
