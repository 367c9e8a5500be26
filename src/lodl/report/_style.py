"""How our figures look, and how they are written.

Figures are drawn in four neutral colours, `INK`, `MUTED`, `LINE` and `PAPER`, beside colours that
mean something. On the page the neutral ones become the page's own, so that a figure follows its
theme.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

INK = "#1c1f23"
"""Text and axes."""

MUTED = "#6a7077"
"""What stands back: reference lines, notes, baselines."""

LINE = "#dfe2e5"
"""The grid."""

PAPER = "#fffffe"
"""The background, for halos around marks; white is left to colour maps."""

_PAGE_COLOURS = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    LINE: "var(--line)",
    PAPER: "var(--paper)",
}

_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "savefig.transparent": False,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "lodl",  # the same figure, the same bytes
    "text.color": INK,
    "text.parse_math": False,  # a name with two dollars is a name
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 9,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 9,
}
_NO_METADATA = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}


@contextmanager
def style() -> Iterator[None]:
    """Set our style for a block, or as the decorator `@style()` of every `draw_…` function."""
    with mpl.rc_context():
        mpl.rcdefaults()  # whatever the user's own settings are
        mpl.rcParams.update(_STYLE)
        yield


def new_figure(width: float = 5.0, height: float = 3.2) -> Figure:
    """Return an empty figure of a size in inches; it belongs to no window and leaves no state."""
    return Figure(figsize=(width, height), layout="constrained")


def shortened(name: str, longest: int = 32) -> str:
    """Return a name short enough to leave room for the figure that it labels."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def save_figure(figure: Figure, path: str | Path) -> tuple[Path, Path]:
    """Write `path`.svg and `path`.png, on white so that they are readable anywhere.

    Returns:
        The two paths. The same figure gives the same bytes.
    """
    svg, png = (Path(f"{path}.{suffix}") for suffix in ("svg", "png"))
    svg.parent.mkdir(parents=True, exist_ok=True)
    with style():
        figure.savefig(svg, metadata=_NO_METADATA["svg"], facecolor="white")
        figure.savefig(png, metadata=_NO_METADATA["png"], facecolor="white", dpi=160)
    return svg, png


def inline_svg(figure: Figure, name: str, *, label: str) -> str:
    """Return a figure as an `<svg>` element for our page, in the page's colours and font.

    Args:
        figure: A figure drawn in our style.
        name: The prefix of all ids in the figure; unique on the page.
        label: What the figure shows, for readers who cannot see it.
    """
    text = io.StringIO()
    with style():
        figure.savefig(text, format="svg", metadata=_NO_METADATA["svg"])
    svg = text.getvalue()
    svg = svg[svg.index("<g ") :]
    svg = re.sub(r'\bid="|(?<=href="#)|(?<=url\(#)', rf"\g<0>{name}-", svg)
    svg = re.sub(r"font-family: [^;\"]+; |font-family: [^;\"]+(?=\")", "", svg)
    for ours, page in _PAGE_COLOURS.items():
        svg = svg.replace(ours, page)
    width, height = (72 * inches for inches in figure.get_size_inches())
    return (
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {width:g} {height:g}" '
        f'style="--width: {width / 0.75:g}px">{svg}'
    )
