"""Drawings of one `fit`, each into axes that are given."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from lodl._amounts import amounts
from lodl._fit_record import FitRecord
from lodl._gain import FEWEST_INSTANCES, interval_95
from lodl._rank_correlation import rank_correlation
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.report._style import INK, LINE, MUTED, PAPER, shortened

KEPT = "#0f7ac0"
"""The colour of the kept model, and of what it made better."""

TWO_STAGE = "#7b828a"
"""The colour of 2-stage."""

WORSE = "#d55e00"
"""The colour of what became worse."""

_MOST_COORDINATES = 20
_DASHED = (0, (4, 3))


def draw_gain(axes: Axes, fit: FitRecord) -> None:
    """Draw the mean regret of 2-stage and of the kept model, with 95% intervals."""
    bars = (
        ("squared error", fit.regret_two_stage, TWO_STAGE),
        ("kept model", fit.regret_kept, KEPT),
    )
    texts = amounts(fit.mean_two_stage, fit.mean_kept)
    for row, ((_, regrets, colour), text) in enumerate(zip(bars, texts, strict=True)):
        axes.barh(row, np.mean(regrets), height=0.58, color=colour)
        axes.annotate(
            text,
            (draw_interval(axes, row, regrets), row),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=11,
            color=INK,
        )
    axes.set_yticks(range(len(bars)), [name for name, *_ in bars])
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.margins(x=0.16)
    axes.set_xlabel(f"regret per instance{_unit(fit)}")


def draw_interval(axes: Axes, row: int, regrets: Sequence[float]) -> float:
    """Draw the 95% interval of a mean regret over its bar, and return the upper end.

    Too few instances have no interval: the end is that of the bar.
    """
    values = np.asarray(regrets)
    low, high = interval_95(values) if len(values) >= FEWEST_INSTANCES else (values.mean(),) * 2
    if values.mean() >= 0:
        low = max(low, 0.0)
    axes.plot([low, high], [row, row], color=INK, linewidth=1.2)
    return float(high)


def draw_history(axes: Axes, fit: FitRecord) -> None:
    """Draw the regret of every model that was tried against the solver calls until then.

    The step line is the best so far; the ring is what was kept.
    """
    calls = np.array([tried.n_calls for tried in fit.history], dtype=float)
    regrets = np.array([tried.regret for tried in fit.history])
    two_stage = np.array([tried.name.startswith("2-stage") for tried in fit.history])
    if two_stage.any():
        axes.axhline(fit.mean_two_stage, color=TWO_STAGE, linewidth=1.0, linestyle=_DASHED)
        axes.annotate(
            "squared error",
            (1, fit.mean_two_stage),
            xycoords=("axes fraction", "data"),
            xytext=(0, 4),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=MUTED,
        )
    best = np.minimum.accumulate(regrets)
    axes.step(calls, best, where="post", color=KEPT, linewidth=1.4, alpha=0.6)
    axes.plot(calls[two_stage], regrets[two_stage], "s", color=TWO_STAGE, markersize=6)
    others = ~two_stage
    axes.plot(calls[others], regrets[others], "o", color=KEPT, markersize=6, markeredgecolor=PAPER)
    kept = [i for i, tried in enumerate(fit.history) if tried.name == fit.chosen]
    if kept:
        axes.plot(
            calls[kept[-1:]], regrets[kept[-1:]], "o", color=INK, markersize=12, fillstyle="none"
        )
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("solver calls")
    axes.set_ylabel(f"held-out regret{_unit(fit)}")


def draw_changes(axes: Axes, fit: FitRecord) -> None:
    """Draw what each held-out instance gained or lost, sorted, as steps."""
    change = np.sort(np.asarray(fit.regret_two_stage) - np.asarray(fit.regret_kept))[::-1]
    edges = np.arange(len(change) + 1)
    axes.stairs(np.maximum(change, 0), edges, fill=True, color=KEPT, alpha=0.85)
    axes.stairs(np.minimum(change, 0), edges, fill=True, color=WORSE, alpha=0.85)
    axes.axhline(0, color=MUTED, linewidth=0.9)
    axes.set_xlim(0, max(len(change), 1))
    axes.set_xlabel("held-out instances, best change first")
    axes.set_ylabel(f"regret avoided{_unit(fit)}")
    axes.grid(visible=False, axis="x")


def draw_coordinates(axes: Axes, fit: FitRecord) -> None:
    """Draw what an error of one coordinate costs, too high to the right and too low to the left.

    The coordinates that cost most are shown, at most 20 of them.
    """
    costs = fit.coordinates
    if costs is None:
        raise InvalidInputError(
            "The kept model was trained on squared error, for which all coordinates are alike."
        )
    over, under = np.asarray(costs.over), np.asarray(costs.under)
    order = np.argsort(-(over + under), kind="stable")[:_MOST_COORDINATES]
    rows = np.arange(len(order))
    axes.barh(rows, over[order], height=0.7, color=WORSE)
    axes.barh(rows, -under[order], height=0.7, color=KEPT)
    axes.axvline(0, color=MUTED, linewidth=0.9)
    axes.set_yticks(rows, [shortened(costs.names[i], 24) for i in order])
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    axes.set_xlabel(f"too low ◂ learned loss{_unit(fit)} ▸ too high")


def draw_fidelity(axes: Axes, fit: FitRecord) -> None:
    """Draw the learned loss against the true regret at the kept model's held-out predictions.

    A few losses far above all others are drawn as triangles at the upper edge.
    """
    regret, loss = np.asarray(fit.regret_kept), np.asarray(fit.loss_kept)
    axes.axline((0, 0), slope=1, color=MUTED, linewidth=0.9, linestyle=_DASHED)
    top = _top(loss)
    inside = loss <= top
    marks: dict[str, Any] = {"color": KEPT, "markersize": 4, "markeredgewidth": 0}
    axes.plot(regret[inside], loss[inside], "o", alpha=0.45, **marks)
    axes.plot(regret[~inside], np.full((~inside).sum(), top), "^", clip_on=False, **marks)
    correlation = rank_correlation(regret, loss)
    notes = [f"rank correlation {correlation:z.2f}"] if math.isfinite(correlation) else []
    if not inside.all():
        notes.append(f"{(~inside).sum()} further up")
    axes.set_title(", ".join(notes), color=MUTED, fontweight="normal")
    high = float(max(regret.max(initial=0.0), 1e-12))
    axes.set_xlim(-0.03 * high, 1.05 * high)
    axes.set_ylim(-0.03 * top, 1.02 * top)
    axes.set_xlabel(f"true regret{_unit(fit)}")
    axes.set_ylabel("learned loss")
    axes.grid(color=LINE)


def _top(loss: Array) -> float:
    """Return the highest loss to draw, such that a few outliers do not flatten all the rest."""
    highest = float(max(loss.max(initial=0.0), 1e-12))
    usual = 1.5 * float(np.quantile(loss, 0.97)) if len(loss) else 0.0
    return usual if 0 < 2 * usual < highest else 1.05 * highest


def _unit(fit: FitRecord) -> str:
    return f", {fit.unit}" if fit.unit else ""
