"""Drawing, and the page that shows a run: everything here reads plain data.

A figure is made in two steps: an `…_info` function computes plain data, a `draw_…` function turns
the data into a matplotlib figure.
"""

from lodl._validation import require

require("matplotlib", extra="report")
require("jinja2", extra="report")

from lodl.report._draw_cost import draw_cost  # noqa: E402
from lodl.report._draw_fidelity import draw_fidelity  # noqa: E402
from lodl.report._draw_linear import draw_linear  # noqa: E402
from lodl.report._draw_losses import draw_losses  # noqa: E402
from lodl.report._draw_quality import draw_quality  # noqa: E402
from lodl.report._draw_slices import draw_slice  # noqa: E402
from lodl.report._draw_time import draw_time  # noqa: E402
from lodl.report._page import write_report  # noqa: E402
from lodl.report._results import results_info  # noqa: E402
from lodl.report._rows import read_rows  # noqa: E402
from lodl.report._style import method_colours, save_figure, style  # noqa: E402

__all__ = [
    "draw_cost",
    "draw_fidelity",
    "draw_linear",
    "draw_losses",
    "draw_quality",
    "draw_slice",
    "draw_time",
    "method_colours",
    "read_rows",
    "results_info",
    "save_figure",
    "style",
    "write_report",
]
