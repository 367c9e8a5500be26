"""Further problems with data, the paper's three among them, and readers of data files.

`DOMAINS` has the domains of `lodl.domains` and of this package by name. `read_prices` reads prices
for `portfolio`.
"""

from collections.abc import Callable, Mapping

from lodl.domains import Domain, item_knapsack, knapsack, newsvendor, shortest_path
from lodl_benchmarks.domains._assignment import Assignment, assignment
from lodl_benchmarks.domains._budget import Budget, Cut, Steps, budget, cut_of, steps_of
from lodl_benchmarks.domains._dispatch import Dispatch, dispatch
from lodl_benchmarks.domains._energy_scheduling import EnergyScheduling, energy_scheduling
from lodl_benchmarks.domains._linear_model import linear_model
from lodl_benchmarks.domains._paths import all_paths
from lodl_benchmarks.domains._portfolio import Portfolio, portfolio, synthetic_prices
from lodl_benchmarks.domains._price_file import Prices, read_prices
from lodl_benchmarks.domains._sector_portfolio import SectorPortfolio, sector_portfolio
from lodl_benchmarks.domains._travelling_salesman import TravellingSalesman, travelling_salesman
from lodl_benchmarks.domains._unit_commitment import UnitCommitment, unit_commitment
from lodl_benchmarks.domains._web_advertising import WebAdvertising, web_advertising

DOMAINS: Mapping[str, Callable[..., Domain]] = {
    "linear_model": linear_model,
    "web_advertising": web_advertising,
    "portfolio": portfolio,
    "shortest_path": shortest_path,
    "knapsack": knapsack,
    "item_knapsack": item_knapsack,
    "newsvendor": newsvendor,
    "travelling_salesman": travelling_salesman,
    "assignment": assignment,
    "budget": budget,
    "sector_portfolio": sector_portfolio,
    "energy_scheduling": energy_scheduling,
    "dispatch": dispatch,
    "unit_commitment": unit_commitment,
}
"""All domains by the names of their functions."""

__all__ = [
    "DOMAINS",
    "Assignment",
    "Budget",
    "Cut",
    "Dispatch",
    "EnergyScheduling",
    "Portfolio",
    "Prices",
    "SectorPortfolio",
    "Steps",
    "TravellingSalesman",
    "UnitCommitment",
    "WebAdvertising",
    "all_paths",
    "assignment",
    "budget",
    "cut_of",
    "dispatch",
    "energy_scheduling",
    "linear_model",
    "portfolio",
    "read_prices",
    "sector_portfolio",
    "steps_of",
    "synthetic_prices",
    "travelling_salesman",
    "unit_commitment",
    "web_advertising",
]
