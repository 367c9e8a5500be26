"""Decision quality of every method in one domain: each model, mean and spread."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lodl.report.parts import MUTED, PAPER, new_figure, shortened, style
from lodl_benchmarks.pages._method_colours import method_colours
from lodl_benchmarks.pages._results import REFERENCES, Result

_GOLDEN = 0.6180339887498949
_ROW_HEIGHT = 0.4  # inches


@style()
def draw_quality(results: Sequence[Result]) -> Figure:
    """Draw the results of one domain, the first on top.

    A dot is a model, the large dot their mean, the bar the standard deviation, the diamond a
    published number. Random predictions and true labels are the lines at 0 and 1.

    Args:
        results: The results of a domain in `results_of(rows).compared`.
    """
    drawn = [result for result in results if result.method not in REFERENCES]
    figure = new_figure(4.6, _ROW_HEIGHT * len(drawn) + 0.85)
    axes = figure.subplots()
    colours = method_colours(result.method for result in drawn)
    for row, result in enumerate(drawn):
        _draw_result(axes, row, result, colours[result.method])
    _draw_references(axes)
    axes.set_yticks(range(len(drawn)), [shortened(result.method) for result in drawn])
    axes.set_ylim(len(drawn) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("decision quality on test data")
    return figure


def _draw_result(axes: Axes, row: int, result: Result, colour: str) -> None:
    values, mean, std = result.runs, result.quality.mean, result.quality.std
    jitter = (np.arange(len(values)) * _GOLDEN) % 1 - 0.5  # even, and the same in every drawing
    axes.plot(
        values, row + 0.36 * jitter, "o", color=colour, markersize=3.5, alpha=0.4, markeredgewidth=0
    )
    axes.plot([mean - std, mean + std], [row, row], color=colour, linewidth=2.2)
    axes.plot(mean, row, "o", color=colour, markersize=8, markeredgecolor=PAPER)
    published = result.published
    if published is not None:
        low, high = published.mean - published.std, published.mean + published.std
        below = row + 0.32
        axes.plot([low, high], [below, below], color=MUTED, linewidth=0.9)
        axes.plot(published.mean, below, "D", color=MUTED, markersize=3.5)


def _draw_references(axes: Axes) -> None:
    for place, name in ((0, "random"), (1, "optimal")):
        axes.axvline(place, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        axes.annotate(
            name,
            (place, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=MUTED,
        )
    axes.margins(x=0.04)
