"""Ready problems with data: each domain is a function that returns a `Domain`."""

from lodl.domains._domain import Domain, Split, Splits
from lodl.domains._knapsack import Knapsack, item_knapsack, knapsack
from lodl.domains._linear_model import TopK, linear_model
from lodl.domains._newsvendor import Newsvendor, newsvendor
from lodl.domains._portfolio import Portfolio, portfolio, synthetic_prices
from lodl.domains._shortest_path import ShortestPath, shortest_path
from lodl.domains._web_advertising import WebAdvertising, web_advertising

__all__ = [
    "Domain",
    "Knapsack",
    "Newsvendor",
    "Portfolio",
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
