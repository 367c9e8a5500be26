"""Tables, drawings and the page that shows a run, all from plain data.

Most users need `write_report` alone. `lodl.report.parts` has what a page is built of.
"""

from lodl._validation import require

require("matplotlib", extra="report")
require("jinja2", extra="report")

from lodl._fit_record import (  # noqa: E402
    ChangedDecision,
    CoordinateCosts,
    FitRecord,
    TriedModel,
)
from lodl.report._comparison import Comparison, PairedDifference  # noqa: E402
from lodl.report._draw_quality import draw_quality  # noqa: E402
from lodl.report._draw_time import draw_time  # noqa: E402
from lodl.report._fit_page import write_fit_report  # noqa: E402
from lodl.report._mean_std import MeanStd  # noqa: E402
from lodl.report._page import write_report  # noqa: E402
from lodl.report._results import Result, Results, results_of  # noqa: E402
from lodl.report._rows import Row, read_rows  # noqa: E402
from lodl.report._slices import Slice, draw_slice  # noqa: E402
from lodl.report._style import method_colours, save_figure, style  # noqa: E402
from lodl.report._table import Cell, Table  # noqa: E402

__all__ = [
    "Cell",
    "ChangedDecision",
    "Comparison",
    "CoordinateCosts",
    "FitRecord",
    "MeanStd",
    "PairedDifference",
    "Result",
    "Results",
    "Row",
    "Slice",
    "Table",
    "TriedModel",
    "draw_quality",
    "draw_slice",
    "draw_time",
    "method_colours",
    "read_rows",
    "results_of",
    "save_figure",
    "style",
    "write_fit_report",
    "write_report",
]
