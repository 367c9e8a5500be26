"""Further problems with data, and readers of data files.

`DOMAINS` has the domains of `lodl.domains` and of this package by name. The readers make data for
`lodl.domains.portfolio` (`read_prices`) and `lodl.domains.web_advertising` (`msweb_graph`,
`read_click_matrices`).
"""

from collections.abc import Callable, Mapping

from lodl import domains
from lodl.domains import Domain
from lodl_benchmarks.domains._assignment import Assignment, assignment
from lodl_benchmarks.domains._click_matrices import ClickMatrices, read_click_matrices
from lodl_benchmarks.domains._dispatch import Dispatch, dispatch
from lodl_benchmarks.domains._energy_scheduling import EnergyScheduling, energy_scheduling
from lodl_benchmarks.domains._price_file import read_prices
from lodl_benchmarks.domains._sector_portfolio import SectorPortfolio, sector_portfolio
from lodl_benchmarks.domains._travelling_salesman import TravellingSalesman, travelling_salesman
from lodl_benchmarks.domains._unit_commitment import UnitCommitment, unit_commitment
from lodl_benchmarks.domains._visit_graph import VisitGraph, msweb_graph

DOMAINS: Mapping[str, Callable[..., Domain]] = {
    **domains.DOMAINS,
    "travelling_salesman": travelling_salesman,
    "assignment": assignment,
    "sector_portfolio": sector_portfolio,
    "energy_scheduling": energy_scheduling,
    "dispatch": dispatch,
    "unit_commitment": unit_commitment,
}
"""All domains by the names of their functions."""

__all__ = [
    "DOMAINS",
    "Assignment",
    "ClickMatrices",
    "Dispatch",
    "EnergyScheduling",
    "SectorPortfolio",
    "TravellingSalesman",
    "UnitCommitment",
    "VisitGraph",
    "assignment",
    "dispatch",
    "energy_scheduling",
    "msweb_graph",
    "read_click_matrices",
    "read_prices",
    "sector_portfolio",
    "travelling_salesman",
    "unit_commitment",
]
