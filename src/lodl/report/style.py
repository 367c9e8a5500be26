"""The style of figures, and figures as SVG inside a page.

Figures are drawn in four neutral colours, `INK`, `MUTED`, `LINE` and `PAPER`, and in colours that
carry a meaning. On a page the neutral colours become the page's, so that figures follow its theme.
"""

# ruff: noqa: E402
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from lodl._arrays import require

require("matplotlib", extra="report")

import matplotlib as mpl
from matplotlib.figure import Figure

__all__ = ["INK", "LINE", "MUTED", "PAPER", "inline_svg", "new_figure", "style"]

INK = "#1c1f23"  #: Text and axes.
MUTED = "#6a7077"  #: Reference lines and notes.
LINE = "#dfe2e5"  #: Grid lines.
PAPER = "#fffffe"  #: Background, for halos around marks. Not white, which colour maps use.

_ON_PAGE = {INK: "currentColor", MUTED: "var(--muted)", LINE: "var(--line)", PAPER: "var(--paper)"}

_STYLE: dict[Any, Any] = {  # what differs from matplotlib's defaults
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), MUTED),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "none"),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    **dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), 9),
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": LINE,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "font.family": "DejaVu Sans",
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "none",  # text stays text, not outlines
    "svg.hashsalt": "lodl",  # the same figure gives the same bytes
    "text.parse_math": False,  # a name with two dollar signs is not a formula
}


@contextmanager
def style() -> Iterator[None]:
    """Apply the style within a `with` block, or to a function as the decorator `@style()`."""
    with mpl.rc_context():
        mpl.rcdefaults()  # the user's settings must not show
        mpl.rcParams.update(_STYLE)
        yield


def new_figure(width: float = 5.0, height: float = 3.2) -> Figure:
    """Return an empty figure of a size in inches, without a window or global state."""
    return Figure(figsize=(width, height), layout="constrained")


def inline_svg(figure: Figure, name: str, *, label: str) -> str:
    """Return a figure as an `<svg>` element in the colours and the font of a page.

    `name` is the prefix of its ids, unique on the page; `label` describes it for screen readers.
    """
    text = io.StringIO()
    with style():
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()  # its texts are escaped
    svg = re.sub(r'\bid="|(?<=href="#)|(?<=url\(#)', rf"\g<0>{name}-", svg[svg.index("<g ") :])
    svg = re.sub(r"font-family: [^;\"]+; |font-family: [^;\"]+(?=\")", "", svg)
    for ours, page in _ON_PAGE.items():
        svg = svg.replace(ours, page)
    width, height = (72 * inches for inches in figure.get_size_inches())
    return (
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {width:g} {height:g}" '
        f'style="--width: {width / 0.75:g}px">{svg}'
    )
