"""Ready problems with data: each domain is a function that returns a `Domain`."""

from lodl.domains._domain import Domain, Split, Splits
from lodl.domains._knapsack import Knapsack, item_knapsack, knapsack
from lodl.domains._newsvendor import Newsvendor, newsvendor
from lodl.domains._shortest_path import ShortestPath, shortest_path
from lodl.domains._top_k import TopK

__all__ = [
    "Domain",
    "Knapsack",
    "Newsvendor",
    "ShortestPath",
    "Split",
    "Splits",
    "TopK",
    "item_knapsack",
    "knapsack",
    "newsvendor",
    "shortest_path",
]
