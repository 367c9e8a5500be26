"""Ready problems with data: each domain is a function that returns a `Domain`.

`DOMAINS` maps names to these functions. The package also exports each domain's problem class and
the records from which its data can be replaced.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from lodl.domains._domain import Domain, ModelShape, Split, Splits
from lodl.domains._knapsack import Knapsack, item_knapsack, knapsack
from lodl.domains._linear_model import TopK, linear_model
from lodl.domains._newsvendor import Newsvendor, newsvendor
from lodl.domains._portfolio import Portfolio, Prices, portfolio, synthetic_prices
from lodl.domains._shortest_path import ShortestPath, shortest_path
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
    "Knapsack",
    "ModelShape",
    "Newsvendor",
    "Portfolio",
    "Prices",
    "ShortestPath",
    "Split",
    "Splits",
    "TopK",
    "WebAdvertising",
    "item_knapsack",
    "knapsack",
    "linear_model",
    "newsvendor",
    "portfolio",
    "shortest_path",
    "synthetic_prices",
    "web_advertising",
]

DOMAINS: Mapping[str, Callable[..., Domain]] = MappingProxyType(
    {
        "linear_model": linear_model,
        "web_advertising": web_advertising,
        "portfolio": portfolio,
        "shortest_path": shortest_path,
        "knapsack": knapsack,
        "item_knapsack": item_knapsack,
        "newsvendor": newsvendor,
    }
)
"""All domains by name, the paper's three first."""
