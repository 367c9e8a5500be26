"""Web Advertising: data, problem and model shape of the paper's second domain."""

from lodl.domains._web_advertising._click_matrices import ClickMatrices, read_click_matrices
from lodl.domains._web_advertising._click_rates import ClickRates, Crop, GeneratedClickRates
from lodl.domains._web_advertising._domain import web_advertising
from lodl.domains._web_advertising._problem import WebAdvertising
from lodl.domains._web_advertising._visit_graph import VisitGraph, msweb_graph

__all__ = [
    "ClickMatrices",
    "ClickRates",
    "Crop",
    "GeneratedClickRates",
    "VisitGraph",
    "WebAdvertising",
    "msweb_graph",
    "read_click_matrices",
    "web_advertising",
]
