"""The page of a fit and the comparison of fits, drawn from plain data.

Most users need `write_fit_report` alone. `lodl.report.parts` has what a page is built of.
"""

from lodl._arrays import require

require("matplotlib", extra="report")
require("jinja2", extra="report")

from lodl._fit_record import (  # noqa: E402
    ChangedDecision,
    CoordinateCosts,
    FitRecord,
    TriedModel,
)
from lodl.report._comparison import Comparison, PairedDifference  # noqa: E402
from lodl.report._evaluation import Evaluation, EvaluationRow  # noqa: E402
from lodl.report._fit_page import write_fit_report  # noqa: E402
from lodl.report._style import save_figure, style  # noqa: E402
from lodl.report._table import Cell, Table  # noqa: E402

__all__ = [
    "Cell",
    "ChangedDecision",
    "Comparison",
    "CoordinateCosts",
    "Evaluation",
    "EvaluationRow",
    "FitRecord",
    "PairedDifference",
    "Table",
    "TriedModel",
    "save_figure",
    "style",
    "write_fit_report",
]
