"""The picture: test regret against oracle calls, one panel per task."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lodl.benchmarks.peers._methods import METHODS, OURS, TWO_STAGE
from lodl.benchmarks.peers._summary import Score, scores
from lodl.benchmarks.peers._tasks import TASKS
from lodl.report import style
from lodl.report.parts import INK, MUTED, PAPER, Block, Section, new_figure, svg_of

_COLOURS: Mapping[str, str] = {
    OURS: "#d55e00",
    "SPO+": "#0f7ac0",
    "PFYL": "#009e73",
    "lsLTR": "#8d6cc7",
    "NCE": "#c99700",
}
_OTHER = "#a3a9b0"
_N_COLUMNS = 4
_TOO_BAD = 1.6  # times the regret of 2-stage: drawn at the edge, with its number


@style()
def draw_peers(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw test regret against oracle calls, with the standard error of the difference to 2-stage.

    Calls are those of all models that are trained, to choose and to average; looks at held-out
    decisions are left out, except for our learner, whose calls are all there are.
    """
    found = scores(rows)
    names = [name for name in TASKS if TWO_STAGE in found.get(name, {}) and len(found[name]) > 1]
    n_rows = -(-len(names) // _N_COLUMNS)
    figure = new_figure(12.0, 2.55 * n_rows + 0.5)
    grid = figure.subplots(n_rows, _N_COLUMNS, squeeze=False)
    for axes in grid.flat[len(names) :]:
        axes.set_visible(False)
    for axes, name in zip(grid.flat, names, strict=False):
        _panel(axes, name, found[name])
    figure.supxlabel("oracle calls, logarithmic", fontsize=10, color=INK)
    figure.supylabel("test regret, % of the optimum", fontsize=10, color=INK)
    return figure


def _panel(axes: Axes, name: str, of_task: Mapping[str, Score]) -> None:
    baseline = of_task[TWO_STAGE]
    line = 100 * baseline.regret
    axes.axhline(line, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.1)
    shown = [of_task[method] for method in METHODS if method in of_task and method != TWO_STAGE]
    worst = _TOO_BAD * line
    for score in sorted(shown, key=lambda one: one.method == OURS):
        _point(axes, score, baseline, worst)
    kept = [100 * one.regret for one in shown if 100 * one.regret < worst]
    low, high = min([*kept, line]), max([*kept, line])
    axes.set_ylim(low - 0.25 * (high - low) - 0.02 * line, high + 0.3 * (high - low) + 0.02 * line)
    axes.set_xscale("log")
    calls = [one.calls for one in shown]
    axes.set_xlim(min(calls) / 3, max(calls) * 5)
    axes.annotate(
        TWO_STAGE,
        (1, line),
        xycoords=("axes fraction", "data"),
        xytext=(-2, 3),
        textcoords="offset points",
        ha="right",
        fontsize=8,
        color=MUTED,
    )
    axes.set_title(TASKS[name].title, fontsize=9)
    axes.minorticks_off()


def _point(axes: Axes, score: Score, baseline: Score, worst: float) -> None:
    is_ours = score.method == OURS
    colour = _COLOURS.get(score.method, _OTHER)
    regret, error = 100 * score.regret, 100 * score.less(baseline).error
    label: dict[str, Any] = {
        "textcoords": "offset points",
        "fontsize": 9 if is_ours else 8,
        "fontweight": "bold" if is_ours else "normal",
        "color": colour if score.method in _COLOURS else MUTED,
    }
    if regret >= worst:
        top = ("data", "axes fraction")
        axes.plot(
            score.calls, 0.97, "^", color=colour, markersize=5, transform=axes.get_xaxis_transform()
        )
        axes.annotate(
            f"{score.method} {regret:.0f}",
            (score.calls, 0.97),
            xycoords=top,
            xytext=(6, -3),
            **label,
        )
        return
    axes.errorbar(
        score.calls,
        regret,
        yerr=error,
        fmt="o",
        color=colour,
        markersize=8 if is_ours else 5.5,
        markeredgecolor=PAPER,
        markeredgewidth=1.0,
        elinewidth=1.4,
        zorder=4 if is_ours else 3,
    )
    axes.annotate(score.method, (score.calls, regret), xytext=(6, 4), zorder=5, **label)


def peers_section(rows: Sequence[Mapping[str, Any]]) -> Section:
    """Return the section of the report page: the picture and the tables."""
    from lodl.benchmarks.peers._tables import tables

    label = "Test regret against oracle calls, one panel per task"
    picture = svg_of(draw_peers(rows), "peers", label=label)
    return Section(
        "peers",
        "Beside other methods",
        "Test regret against oracle calls for every task. All methods share one solver, one "
        "training loop and one treatment; our learner has its defaults. Bars are standard errors "
        "of the difference to 2-stage, paired by data seed and test instance.",
        (Block(svgs=(picture,), is_wide=True), Block(tables=tuple(tables(rows)), is_wide=True)),
    )
