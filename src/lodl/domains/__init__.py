"""Ready problems with data: each domain is a function that returns a `Domain`.

`DOMAINS` lists them by name, and `load` makes one of them. A domain's own names (its problem, its
sources of data) stand beside it.
"""

from lodl.domains._assignment import Assignment, assignment
from lodl.domains._dispatch import Dispatch, dispatch
from lodl.domains._domain import Domain, ModelShape
from lodl.domains._energy_scheduling import EnergyScheduling, energy_scheduling
from lodl.domains._instances import Instances, Splits
from lodl.domains._knapsack import Knapsack, item_knapsack, knapsack
from lodl.domains._linear_model import TopK, linear_model
from lodl.domains._newsvendor import Newsvendor, newsvendor
from lodl.domains._portfolio import Portfolio, Prices, portfolio, read_prices, synthetic_prices
from lodl.domains._sector_portfolio import SectorPortfolio, sector_portfolio
from lodl.domains._shortest_path import ShortestPath, shortest_path
from lodl.domains._table import DOMAINS, load
from lodl.domains._travelling_salesman import TravellingSalesman, travelling_salesman
from lodl.domains._unit_commitment import UnitCommitment, unit_commitment
from lodl.domains._web_advertising import (
    ClickMatrices,
    ClickRates,
    Crop,
    GeneratedClickRates,
    VisitGraph,
    WebAdvertising,
    msweb_graph,
    read_click_matrices,
    web_advertising,
)

__all__ = [
    "DOMAINS",
    "Assignment",
    "ClickMatrices",
    "ClickRates",
    "Crop",
    "Dispatch",
    "Domain",
    "EnergyScheduling",
    "GeneratedClickRates",
    "Instances",
    "Knapsack",
    "ModelShape",
    "Newsvendor",
    "Portfolio",
    "Prices",
    "SectorPortfolio",
    "ShortestPath",
    "Splits",
    "TopK",
    "TravellingSalesman",
    "UnitCommitment",
    "VisitGraph",
    "WebAdvertising",
    "assignment",
    "dispatch",
    "energy_scheduling",
    "item_knapsack",
    "knapsack",
    "linear_model",
    "load",
    "msweb_graph",
    "newsvendor",
    "portfolio",
    "read_click_matrices",
    "read_prices",
    "sector_portfolio",
    "shortest_path",
    "synthetic_prices",
    "travelling_salesman",
    "unit_commitment",
    "web_advertising",
]
