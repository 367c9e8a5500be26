"""Draws the time to train a model, by cores and by the models that share learned losses."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from lodl.report.style import INK, MUTED, PAPER, new_figure, style
from lodl_benchmarks.pages import method_colours
from lodl_benchmarks.paper._cost_figure import (
    SHORT_NAMES,
    ByCores,
    CostFigure,
    DomainCosts,
    PreparationCosts,
)

_COMPUTED = (0, (4, 2.5))
_HEADROOM = 1.3  # the height of the axes in units of the curves': labels stand above them
_LABEL_GAP = 0.09  # between two labels, as a share of the axis


@style()
def draw_cost(data: CostFigure) -> Figure:
    """Draw the seconds of one model: dots were measured, dashed lines are computed."""
    domains = data.domains
    figure = new_figure(9, 2.9 * len(domains) + 0.8)
    grid = figure.subplots(len(domains), 2, sharex="col", sharey="row", squeeze=False)
    for (left, right), domain in zip(grid, domains, strict=True):
        _draw_by_cores(left, domain)
        _draw_by_models(right, domain)
        left.set_ylabel(f"{domain.title}\nseconds for a model")
    ticks = [2**i for i in range(domains[0].by_cores.cores[-1].bit_length())]
    grid[-1, 0].set(xlabel="cores", xticks=ticks, xticklabels=ticks)
    grid[-1, 1].set(
        xlabel="models trained on the same learned losses", xticks=[1, *range(10, 51, 10)]
    )
    grid[0, 0].set_title("One model on more cores")
    grid[0, 1].set_title("More models on one core")
    figure.suptitle(
        "Time to train a model, with what has to be done before: learned losses (LODL) need "
        "samples and a fit.\nDots are measured; dashed lines are computed from them.",
        x=0.01,
        ha="left",
        fontsize=11,
    )
    return figure


def _draw_by_cores(axes: Axes, domain: DomainCosts) -> None:
    curves = domain.by_cores
    _draw(axes, curves.cores, curves.seconds, domain.measured)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    _mark_computed(axes, curves)
    share = domain.break_even
    if share is not None and 1 < share < curves.cores[-1]:
        _mark_break_even(axes, share, curves.cores[-1])


def _mark_break_even(axes: Axes, share: float, most: int) -> None:
    """Mark from how many cores learned losses cost less, on the side that has room."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, low * (high / low) ** _HEADROOM)
    axes.axvline(share, color=MUTED, linewidth=0.9, linestyle=":")
    is_left = share * share < most
    axes.annotate(
        f"LODL below DFL\nfrom {share:.1f} cores",
        (share, 0.98),
        xycoords=axes.get_xaxis_transform(),
        xytext=(5 if is_left else -5, 0),
        textcoords="offset points",
        ha="left" if is_left else "right",
        va="top",
        color=MUTED,
        fontsize=9,
    )


def _draw_by_models(axes: Axes, domain: DomainCosts) -> None:
    curves = domain.by_models
    _draw(axes, curves.models, curves.seconds, domain.measured[:1])
    _label_ends(axes, curves.seconds)


def _draw(
    axes: Axes,
    shares: Sequence[int],
    seconds: Mapping[str, Sequence[float]],
    measured: Sequence[PreparationCosts],
) -> None:
    """Draw the computed curves, and dots for what was measured."""
    for name, colour in method_colours(seconds).items():
        axes.plot(shares, seconds[name], color=colour, linestyle=_COMPUTED, linewidth=1.5)
        axes.plot(
            [part.cores for part in measured],
            [part.seconds[name] for part in measured],
            "o",
            color=colour,
            markeredgecolor=PAPER,
            markersize=8,
        )


def _mark_computed(axes: Axes, curves: ByCores) -> None:
    """Say so on the curve that changes with the number of cores."""
    middle = int(len(curves.cores) ** 0.5) - 1
    steepest = max(curves.seconds.values(), key=lambda curve: curve[0] / curve[-1])
    axes.annotate(
        "computed",
        (curves.cores[middle], steepest[middle]),
        xytext=(6, 4),
        textcoords="offset points",
        color=MUTED,
        fontsize=9,
    )


def _label_ends(axes: Axes, seconds: Mapping[str, Sequence[float]]) -> None:
    """Name each curve at its right end, one label above the other where ends are close."""
    low, high = np.log(axes.get_ylim())
    heights = {name: (np.log(curve[-1]) - low) / (high - low) for name, curve in seconds.items()}
    colours, above = method_colours(seconds), -np.inf
    for name in sorted(heights, key=heights.__getitem__):
        above = max(heights[name], above + _LABEL_GAP)
        mark = axes.scatter(1.03, above, s=36, color=colours[name], transform=axes.transAxes)
        mark.set_clip_on(False)
        title = SHORT_NAMES.get(name, name)
        axes.text(1.055, above, title, color=INK, va="center", transform=axes.transAxes)
