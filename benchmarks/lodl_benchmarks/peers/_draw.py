"""The picture: test regret against oracle calls, one panel per task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from lodl.report.style import INK, MUTED, PAPER, new_figure, style
from lodl_benchmarks.peers._methods import METHODS, ONE_MODEL, OURS, TWO_STAGE
from lodl_benchmarks.peers._summary import Score, scores
from lodl_benchmarks.peers._tasks import TASKS


@dataclass(frozen=True)
class _Mark:
    """Marker and colour of a method."""

    colour: str
    shape: str
    size: float


_MARKS: Mapping[str, _Mark] = {
    OURS: _Mark("#d55e00", "o", 9.5),
    "SPO+": _Mark("#0f7ac0", "s", 6.0),
    "PFYL": _Mark("#009e73", "D", 5.5),
    "lsLTR": _Mark("#8d6cc7", "v", 7.0),
    "NCE": _Mark("#c99700", "h", 7.0),
}
_ONE = _Mark("#0f7ac0", "x", 5.0)
_ONE_LABEL = "SPO+, one model"
_OTHER = _Mark("#b4b9bf", "o", 4.5)
_OTHERS = "further methods"
_N_COLUMNS = 4
_TOO_BAD = 1.3  # times the regret of 2-stage: drawn at the edge


def colour_of(method: str) -> str:
    """Return the colour of a method in every picture."""
    return _mark(method).colour


def _mark(method: str) -> _Mark:
    return _ONE if method in ONE_MODEL else _MARKS.get(method, _OTHER)


def drawn_tasks(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the tasks that can be drawn: those with 2-stage and another method."""
    by_task = scores(rows)
    names = [
        name for name in TASKS if TWO_STAGE in by_task.get(name, {}) and len(by_task[name]) > 1
    ]
    return [name for name in names if OURS in by_task[name]] or names


@style()
def draw_peers(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw test regret against oracle calls, with the standard error of the difference to 2-stage.

    Calls are those of all models that are trained, to choose and to average; looks at held-out
    decisions are left out. `drawn_tasks` must name at least one task.
    """
    by_task, names = scores(rows), drawn_tasks(rows)
    n_rows = -(-len(names) // _N_COLUMNS)
    figure = new_figure(12.0, 2.7 * n_rows + 0.9)
    grid = figure.subplots(n_rows, _N_COLUMNS, squeeze=False, sharex=True)
    for axes in grid.flat[len(names) :]:
        axes.set_visible(False)
    for axes, name in zip(grid.flat, names, strict=False):
        _panel(axes, name, by_task[name])
    shown = [s for name in names for s in by_task[name].values() if s.method != TWO_STAGE]
    grid[0, 0].set_xlim(min(s.calls for s in shown) / 2, max(s.calls for s in shown) * 2)
    for axes in grid.flat:
        axes.xaxis.set_tick_params(labelbottom=True)
    figure.supxlabel("oracle calls for all models that were trained", fontsize=10, color=INK)
    figure.supylabel("test regret, % of the optimum", fontsize=10, color=INK)
    _legend(figure, {score.method for score in shown})
    return figure


def _panel(axes: Axes, name: str, of_task: Mapping[str, Score]) -> None:
    baseline = of_task[TWO_STAGE]
    line = 100 * baseline.regret
    axes.axhline(line, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2)
    shown = [of_task[method] for method in METHODS if method in of_task and method != TWO_STAGE]
    worst = _TOO_BAD * line
    for score in shown:
        _point(axes, score, baseline, worst)
    levels = [_level(score, baseline) for score in shown]
    kept = [*(level for level in levels if level < worst), line]
    room = 0.18 * (max(kept) - min(kept)) + 0.03 * line
    axes.set_ylim(min(kept) - room, max(kept) + room)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(10))
    axes.xaxis.set_major_formatter(FuncFormatter(_in_short))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.minorticks_off()
    decided, _, data = TASKS[name].title.partition(", ")
    axes.set_title(decided, fontsize=10, pad=16)
    axes.text(0, 1.03, data, transform=axes.transAxes, fontsize=8.5, color=MUTED)


def _point(axes: Axes, score: Score, baseline: Score, worst: float) -> None:
    mark = _mark(score.method)
    regret, error = _level(score, baseline), 100 * score.less(baseline).error
    order = 2 - list(_MARKS).index(score.method) if score.method in _MARKS else 2 - len(_MARKS)
    if regret >= worst:
        edge = axes.get_xaxis_transform()
        axes.plot(score.calls, 0.97, "^", color=mark.colour, markersize=6, transform=edge)
        axes.annotate(
            f"{regret:.0f}",
            (score.calls, 0.97),
            xycoords=("data", "axes fraction"),
            xytext=(6, -3),
            textcoords="offset points",
            fontsize=8,
            color=mark.colour,
        )
        return
    axes.errorbar(
        score.calls,
        regret,
        yerr=error,
        fmt=mark.shape,
        color=mark.colour,
        markersize=mark.size,
        markeredgecolor=mark.colour if mark is _ONE else PAPER,
        markeredgewidth=0.9,
        elinewidth=1.5,
        zorder=10 + order,
    )


def _level(score: Score, baseline: Score) -> float:
    """Return the regret of 2-stage plus the paired difference: missing seeds do not show."""
    return 100 * (baseline.regret + score.less(baseline).mean)


def _legend(figure: Figure, methods: set[str]) -> None:
    marks = {name: mark for name, mark in _MARKS.items() if name in methods}
    if methods & set(ONE_MODEL):
        marks[_ONE_LABEL] = _ONE
    if methods - set(marks) - set(ONE_MODEL):
        marks[_OTHERS] = _OTHER
    handles = [
        Line2D([], [], color=mark.colour, marker=mark.shape, markersize=mark.size, linestyle="")
        for mark in marks.values()
    ]
    handles.append(Line2D([], [], color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2))
    legend = figure.legend(
        handles, [*marks, TWO_STAGE], loc="outside upper left", ncols=len(handles), fontsize=10
    )
    for text in legend.get_texts():
        if text.get_text() == OURS:
            text.set_fontweight("bold")


def _in_short(calls: float, _: int) -> str:
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if calls >= unit:
            return f"{calls / unit:g}{letter}"
    return f"{calls:g}"
