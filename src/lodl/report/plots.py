"""The figures of a fit as Matplotlib axes, for its page and for notebooks.

Each function takes a fitted `lodl.DecisionFocusedRegressor` or its `result_`, and draws into `ax`
or into new axes: `plots.gain(model)`, `plots.changes(model, ax=axes[1])`. `plots.gain` and
`plots.regrets` also take what `evaluate` returns.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lodl.report._result import FEWEST, MEAN_LABEL, FitResult, in_unit
from lodl.report._tables import Evaluation
from lodl.report.style import INK, MUTED, PAPER, style

from matplotlib.axes import Axes  # isort: skip - after the check that it is installed
from matplotlib.ticker import MaxNLocator  # isort: skip

__all__ = ["changes", "gain", "regrets"]

SELECTED_COLOUR = "#0f7ac0"  # the selected model, and what it improved
BASELINE_COLOUR = "#7b828a"
WORSE_COLOUR = "#d55e00"


@style()
def regrets(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the mean regret of each row of an `Evaluation`, or of a fit on validation instances."""
    axes, evaluation = _axes(ax), _evaluation(model)
    means, rows = evaluation.means, evaluation.table().rows
    looks: Any = {"textcoords": "offset points", "va": "center", "fontsize": 10, "color": INK}
    for row, (name, mean) in enumerate(means.items()):
        colour = BASELINE_COLOUR if row < len(means) - 1 else SELECTED_COLOUR
        alpha = 0.45 if name == MEAN_LABEL else 1.0
        axes.barh(row, mean, height=0.6, color=colour, alpha=alpha)
        axes.annotate(rows[row][1].text, (max(mean, 0.0), row), (5, 0), **looks)
    _name_rows(axes, list(means), margin=0.18)
    axes.set_xlabel(f"regret per instance{in_unit(evaluation.unit, ', ')}\n(0: perfect foresight)")
    return axes


@style()
def gain(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the regret that the model avoids compared with simpler ways, with 95% intervals.

    Differences are paired by instance. Takes an `Evaluation` or a fit, whose validation instances
    are compared. The mean label is drawn only if it is the best of the simpler ways.
    """
    axes, evaluation = _axes(ax), _evaluation(model)
    *others, _ = evaluation.regrets
    reference = evaluation.reference
    names = [name for name in others if name in (reference, *set(others) - {MEAN_LABEL})]
    axes.axvline(0, color=MUTED, linewidth=0.9)
    for row, name in enumerate(names):
        avoided = evaluation.gain(name)
        colour = {"better": SELECTED_COLOUR, "worse": WORSE_COLOUR}.get(evaluation.compared(name))
        marks: Any = {"color": colour or BASELINE_COLOUR, "solid_capstyle": "butt"}
        if avoided.n_instances >= FEWEST:
            axes.plot([avoided.low, avoided.high], [row, row], linewidth=3, **marks)
        axes.plot(avoided.mean, row, "o", markersize=8, markeredgecolor=PAPER, **marks)
    _name_rows(axes, [f"less than {name}" for name in names], margin=0.1)
    unit = in_unit(evaluation.unit, ", ")
    axes.set_xlabel(f"worse ◂ regret avoided{unit} ▸ better", x=1, ha="right")
    return axes


@style()
def changes(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the regret that each validation instance avoided or added, sorted, as steps."""
    axes, result = _axes(ax), _result(model)
    change = np.sort(np.array(result.regret_baseline) - np.array(result.regret_selected))[::-1]
    edges = np.arange(len(change) + 1)
    axes.stairs(np.maximum(change, 0), edges, fill=True, color=SELECTED_COLOUR, alpha=0.85)
    axes.stairs(np.minimum(change, 0), edges, fill=True, color=WORSE_COLOUR, alpha=0.85)
    axes.axhline(0, color=MUTED, linewidth=0.9)
    axes.set(xlabel="validation instances, best change first", xlim=(0, len(change)))
    axes.set_ylabel(f"regret avoided{in_unit(result.unit, ', ')}")
    axes.grid(visible=False, axis="x")
    return axes


def _name_rows(axes: Axes, names: Sequence[str], margin: float) -> None:
    """Label horizontal bars from top to bottom, with few ticks."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.margins(x=margin)
    axes.xaxis.set_major_locator(MaxNLocator(5))


def _axes(ax: Axes | None) -> Axes:
    """Return the axes to draw into, new ones by default."""
    if ax is None:
        from matplotlib import pyplot as plt  # global state, which a page does without

        _, ax = plt.subplots(layout="constrained")
    return ax


def _result(model: Any) -> FitResult:
    return model if isinstance(model, FitResult) else model.result_


def _evaluation(model: Any) -> Evaluation:
    return model if isinstance(model, Evaluation) else Evaluation.of_fit(_result(model))
