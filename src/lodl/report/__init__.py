"""Drawing, and the page that shows a run: everything here reads plain data.

A figure is made in two steps: an `…_info` function computes plain data, a `draw_…` function turns
the data into a matplotlib figure.
"""

from lodl.validation import require

require("matplotlib", extra="report")
require("jinja2", extra="report")

from lodl.report._draw_cost import draw_cost  # noqa: E402
from lodl.report._draw_fidelity import draw_fidelity  # noqa: E402
from lodl.report._draw_linear import draw_linear  # noqa: E402
from lodl.report._draw_losses import draw_losses  # noqa: E402
from lodl.report._page import write_report  # noqa: E402
from lodl.report._style import (  # noqa: E402
    INK,
    LINE,
    MUTED,
    PAPER,
    inline_svg,
    method_colours,
    new_figure,
    save_figure,
    style,
)

__all__ = [
    "INK",
    "LINE",
    "MUTED",
    "PAPER",
    "draw_cost",
    "draw_fidelity",
    "draw_linear",
    "draw_losses",
    "inline_svg",
    "method_colours",
    "new_figure",
    "save_figure",
    "style",
    "write_report",
]
