"""Data sets as arrays: features, labels and contexts; they know no problem."""

from lodl.datasets._click_matrices import ClickMatrices, read_click_matrices
from lodl.datasets._click_rates import ClickRates, Crop, GeneratedClickRates
from lodl.datasets._instances import Instances, Splits
from lodl.datasets._linear_model import linear_model
from lodl.datasets._portfolio import portfolio
from lodl.datasets._price_file import read_prices
from lodl.datasets._prices import Prices, synthetic_prices
from lodl.datasets._visit_graph import VisitGraph, msweb_graph
from lodl.datasets._web_advertising import web_advertising

__all__ = [
    "ClickMatrices",
    "ClickRates",
    "Crop",
    "GeneratedClickRates",
    "Instances",
    "Prices",
    "Splits",
    "VisitGraph",
    "linear_model",
    "msweb_graph",
    "portfolio",
    "read_click_matrices",
    "read_prices",
    "synthetic_prices",
    "web_advertising",
]
