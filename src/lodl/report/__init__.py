"""The result of a fit as plain data, its page, its figures, and comparisons of results.

Importing this package needs neither matplotlib nor jinja2; drawing does. `lodl.report.plots` has
the figures for notebooks, and `lodl.report.parts` the parts of a page.
"""

from typing import TYPE_CHECKING, Any

from lodl._arrays import require
from lodl._fit_record import FitRecord, TriedModel
from lodl.report._evaluation import Evaluation, EvaluationRow
from lodl.report._result import (
    BASELINE,
    PLAIN,
    ChangedDecision,
    CoordinateCosts,
    Estimate,
    Failures,
    FitResult,
    Trial,
)
from lodl.report._table import Cell, Table

if TYPE_CHECKING:
    from lodl.report._comparison import Comparison, PairedDifference
    from lodl.report._fit_page import write_fit_report
    from lodl.report._style import save_figure, style

__all__ = [
    "BASELINE",
    "PLAIN",
    "Cell",
    "ChangedDecision",
    "Comparison",
    "CoordinateCosts",
    "Estimate",
    "Evaluation",
    "EvaluationRow",
    "Failures",
    "FitRecord",
    "FitResult",
    "PairedDifference",
    "Table",
    "Trial",
    "TriedModel",
    "save_figure",
    "style",
    "write_fit_report",
]

_DRAWN = {
    "Comparison": "_comparison",
    "PairedDifference": "_comparison",
    "save_figure": "_style",
    "style": "_style",
    "write_fit_report": "_fit_page",
}


def __getattr__(name: str) -> Any:
    """Load what draws on first use: it needs the extra `report`."""
    if name not in _DRAWN:
        raise AttributeError(f"module 'lodl.report' has no attribute {name!r}")
    require("matplotlib", extra="report")
    require("jinja2", extra="report")
    import importlib

    return getattr(importlib.import_module(f"lodl.report.{_DRAWN[name]}"), name)
