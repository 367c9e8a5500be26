"""The picture of the bill: regret against calls, and against CPU seconds by a call's price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from lodl.report.style import INK, MUTED, PAPER, new_figure, style
from lodl_benchmarks.peers._bill import CURVES, SECONDS_A_CALL, Bill, bills
from lodl_benchmarks.peers._methods import ONE_MODEL, OURS, TWO_STAGE, VARIANTS
from lodl_benchmarks.peers._summary import scores


@dataclass(frozen=True)
class _Mark:
    """Marker and colour of a method."""

    colour: str
    shape: str
    size: float


_MARKS: Mapping[str, _Mark] = {
    OURS: _Mark("#d55e00", "o", 9.5),
    "SPO+": _Mark("#0f7ac0", "s", 7.0),
    "PFYL": _Mark("#009e73", "D", 5.5),
    "lsLTR": _Mark("#8d6cc7", "v", 7.0),
    "NCE": _Mark("#c99700", "h", 7.0),
}
_ONE = _Mark("#0f7ac0", "x", 5.0)
_BUDGET = _Mark("#d55e00", "o", 5.0)
_OTHER = _Mark("#b4b9bf", "o", 4.5)
_NEAR = 0.85  # share of our price from which a budget has no label
_WORST = 1.25  # times the regret of squared error: worse ones are at the edge


def colour_of(method: str) -> str:
    """Return the colour of a method in every picture."""
    return _mark(method).colour


def _mark(method: str) -> _Mark:
    if method in VARIANTS:
        return _BUDGET
    return _ONE if method in ONE_MODEL else _MARKS.get(method, _OTHER)


@style()
def draw_bill(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw regret over that of squared error against four prices, over all linear tasks."""
    found = bills(scores(rows))
    figure = new_figure(12.0, 3.9)
    grid = figure.subplots(1, 1 + len(SECONDS_A_CALL), sharey=True)
    _panel(grid[0], found, [bill.calls for bill in found], "solver calls an instance")
    for i, label in enumerate(SECONDS_A_CALL):
        prices = [bill.seconds[i] for bill in found]
        _panel(grid[i + 1], found, prices, f"CPU s at {label} a call")
    grid[0].set_ylabel(f"regret over that of {TWO_STAGE}")
    return figure


def _panel(axes: Axes, found: Sequence[Bill], prices: Sequence[float], label: str) -> None:
    axes.axhline(1, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2)
    axes.set_xscale("log")
    points = {
        bill.method: (price, min(bill.regret, _WORST))
        for bill, price in zip(found, prices, strict=True)
    }
    for names in CURVES.values():
        shown = sorted(points[name] for name in names if name in points)
        axes.plot(*zip(*shown, strict=True), color=_mark(names[0]).colour, linewidth=1.2)
    for bill in found:
        mark, point = _mark(bill.method), points[bill.method]
        shape = "^" if bill.regret > _WORST else mark.shape
        edge = mark.colour if shape == "x" else PAPER
        axes.plot(*point, shape, color=mark.colour, markersize=mark.size, markeredgecolor=edge)
        if bill.method in VARIANTS and point[0] > _NEAR * points[OURS][0]:
            continue  # the budget does not bind: its label would hide that of the defaults
        axes.annotate(
            bill.method.partition(", ")[2].partition(" ")[0] or bill.method,
            point,
            (5, 4),
            textcoords="offset points",
            fontsize=7.5,
            color=INK if mark is _OTHER else mark.colour,
            fontweight="bold" if bill.method == OURS else "normal",
        )
    axes.xaxis.set_major_locator(LogLocator(10))
    axes.xaxis.set_major_formatter(FuncFormatter(_in_short))
    axes.minorticks_off()
    axes.set_xlabel(label)
    axes.margins(x=0.15)


def _in_short(value: float, _: int) -> str:
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"
