"""The figures of a fit as Matplotlib axes, for its page and for notebooks.

Each function takes a fitted `lodl.DecisionFocusedRegressor` or its `result_`, and draws into `ax`
or into new axes: `plots.gain(model)`, `plots.coordinates(model, ax=axes[1])`.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lodl._arrays import rank_correlation
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.report._result import BASELINE, FEWEST, PLAIN, Estimate, FitResult, amounts
from lodl.report.page import shortened
from lodl.report.style import INK, LINE, MUTED, PAPER, style

from matplotlib.axes import Axes  # isort: skip - after the check that it is installed
from matplotlib.ticker import MaxNLocator  # isort: skip

__all__ = ["changes", "coordinates", "fidelity", "gain", "trials"]

SELECTED_COLOUR = "#0f7ac0"  # the selected model, and what it improved
BASELINE_COLOUR = "#7b828a"
WORSE_COLOUR = "#d55e00"
MAX_COORDINATES = 20  # numbers of a label that are drawn
_MAX_NAME = 24  # characters of a coordinate's name
_DASHED = (0, (4, 3))


@style()
def gain(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the mean regret of squared error and of the selected model, with 95% intervals."""
    axes, result = _opened(model, ax)
    bars = [
        (PLAIN, result.regret_plain, BASELINE_COLOUR),
        (BASELINE, result.regret_baseline, BASELINE_COLOUR),
        ("selected model", result.regret_selected, SELECTED_COLOUR),
    ][not result.has_plain :]
    texts = amounts(*(float(np.mean(regrets)) for _, regrets, _ in bars))
    for row, ((_, regrets, colour), text) in enumerate(zip(bars, texts, strict=True)):
        axes.barh(row, np.mean(regrets), height=0.58, color=colour)
        looks: Any = {"textcoords": "offset points", "va": "center", "fontsize": 11, "color": INK}
        axes.annotate(text, (_draw_interval(axes, row, regrets), row), (6, 0), **looks)
    _name_rows(axes, [name for name, *_ in bars])
    axes.margins(x=0.16)
    axes.set_xlabel(f"regret per instance{_unit(result)}")
    return axes


def _draw_interval(axes: Axes, row: int, regrets: Sequence[float]) -> float:
    """Draw the 95% interval of a mean regret, if it has one, and return the upper end."""
    mean = Estimate.of(regrets)
    is_long = mean.n_instances >= FEWEST
    low, high = (mean.low, mean.high) if is_long else (mean.mean, mean.mean)
    low = max(low, 0.0) if mean.mean >= 0 else low
    axes.plot([low, high], [row, row], color=INK, linewidth=1.2)
    return high


@style()
def trials(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the validation regret of every trial against the solver calls so far.

    The step line is the best so far; the ring is the selected model.
    """
    axes, result = _opened(model, ax)
    calls = np.array([trial.n_calls for trial in result.trials], dtype=float)
    regrets = np.array([trial.regret for trial in result.trials])
    is_baseline = np.array([trial.is_baseline for trial in result.trials])
    if is_baseline.any():
        mean = result.mean_baseline
        axes.axhline(mean, color=BASELINE_COLOUR, linewidth=1.0, linestyle=_DASHED)
        looks: Any = {"textcoords": "offset points", "ha": "right", "fontsize": 8, "color": MUTED}
        axes.annotate(BASELINE, (1, mean), (0, 4), ("axes fraction", "data"), **looks)
    best = np.minimum.accumulate(regrets)
    axes.step(calls, best, where="post", color=SELECTED_COLOUR, linewidth=1.4, alpha=0.6)
    marks: Any = {"markersize": 6, "markeredgecolor": PAPER}
    axes.plot(calls[is_baseline], regrets[is_baseline], "s", color=BASELINE_COLOUR, **marks)
    axes.plot(calls[~is_baseline], regrets[~is_baseline], "o", color=SELECTED_COLOUR, **marks)
    place = calls[result.selected], regrets[result.selected]
    axes.plot(*place, "o", color=INK, markersize=12, fillstyle="none")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set(xlabel="solver calls", ylabel=f"validation regret{_unit(result)}")
    return axes


@style()
def changes(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the regret that each validation instance avoided or added, sorted, as steps."""
    axes, result = _opened(model, ax)
    change = np.sort(np.array(result.regret_baseline) - np.array(result.regret_selected))[::-1]
    edges = np.arange(len(change) + 1)
    axes.stairs(np.maximum(change, 0), edges, fill=True, color=SELECTED_COLOUR, alpha=0.85)
    axes.stairs(np.minimum(change, 0), edges, fill=True, color=WORSE_COLOUR, alpha=0.85)
    axes.axhline(0, color=MUTED, linewidth=0.9)
    axes.set(xlabel="validation instances, best change first", xlim=(0, len(change)))
    axes.set_ylabel(f"regret avoided{_unit(result)}")
    axes.grid(visible=False, axis="x")
    return axes


@style()
def coordinates(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the learned loss of an error in one number, too high to the right, too low to the left.

    The 20 numbers that cost most are shown. A model trained on squared error is refused.
    """
    axes, result = _opened(model, ax)
    costs = result.coordinates
    if costs is None:
        raise InvalidInputError(
            "The selected model was trained on squared error, which treats all numbers alike."
        )
    over, under = np.array(costs.over), np.array(costs.under)
    order = np.argsort(-(over + under), kind="stable")[:MAX_COORDINATES]
    rows = np.arange(len(order))
    axes.barh(rows, over[order], height=0.7, color=WORSE_COLOUR)
    axes.barh(rows, -under[order], height=0.7, color=SELECTED_COLOUR)
    axes.axvline(0, color=MUTED, linewidth=0.9)
    _name_rows(axes, [shortened(costs.names[i], _MAX_NAME) for i in order])
    axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    axes.set_xlabel(f"too low ◂ learned loss{_unit(result)} ▸ too high")
    return axes


@style()
def fidelity(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the learned loss against the true regret at the selected model's predictions.

    A few losses far above all others are drawn as triangles at the upper edge. A model trained on
    squared error is refused.
    """
    axes, result = _opened(model, ax)
    regret, loss = np.array(result.regret_selected), np.array(result.loss_selected)
    if not len(loss):
        raise InvalidInputError("The selected model was trained on squared error.")
    inside = loss <= (top := _top(loss))
    axes.axline((0, 0), slope=1, color=MUTED, linewidth=0.9, linestyle=_DASHED)
    marks: Any = {"color": SELECTED_COLOUR, "markersize": 4, "markeredgewidth": 0}
    axes.plot(regret[inside], loss[inside], "o", alpha=0.45, **marks)
    axes.plot(regret[~inside], np.full((~inside).sum(), top), "^", clip_on=False, **marks)
    correlation = rank_correlation(regret, loss)
    notes = [f"rank correlation {correlation:z.2f}"] if math.isfinite(correlation) else []
    notes += [] if inside.all() else [f"{(~inside).sum()} above the edge"]
    axes.set_title(", ".join(notes), color=MUTED, fontweight="normal")
    high = float(max(regret.max(), 1e-12))
    axes.set(xlim=(-0.03 * high, 1.05 * high), ylim=(-0.03 * top, 1.02 * top))
    axes.set(xlabel=f"true regret{_unit(result)}", ylabel="learned loss")
    axes.grid(color=LINE)
    return axes


def _top(loss: Array) -> float:
    """Return the highest loss to draw, so that a few outliers do not flatten the others."""
    highest, usual = float(max(loss.max(), 1e-12)), 1.5 * float(np.quantile(loss, 0.97))
    return usual if 0 < 2 * usual < highest else 1.05 * highest


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Label horizontal bars from top to bottom."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def _opened(model: Any, ax: Axes | None) -> tuple[Axes, FitResult]:
    """Return the axes to draw into, new ones by default, and the result to draw."""
    if ax is None:
        from matplotlib import pyplot as plt  # global state, which a page does without

        _, ax = plt.subplots(layout="constrained")
    return ax, model if isinstance(model, FitResult) else model.result_


def _unit(result: FitResult) -> str:
    return f", {result.unit}" if result.unit else ""
