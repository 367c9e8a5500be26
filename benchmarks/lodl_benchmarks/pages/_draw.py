"""Drawings of a domain's results: decision quality and time by method, in fixed colours."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lodl.report.page import shortened
from lodl.report.style import INK, MUTED, PAPER, new_figure, style
from lodl_benchmarks.pages._results import REFERENCES, Result
from lodl_benchmarks.pages._rows import PARTS

# After Okabe and Ito, for colour-blind readers. Two families of one kind share a
# hue, the directed one darker; vermilion, the most salient, is ours; baselines are grey.
_METHOD_COLOURS: Mapping[str, str] = {
    "Random": "#a3a9b0",
    "Optimal": "#a3a9b0",
    "Constant": "#a3a9b0",
    "2-stage": "#7b828a",
    "DFL": "#c99700",
    "NN": "#cc79a7",
    "WeightedMSE": "#56b4e9",
    "DirectedWeightedMSE": "#0f7ac0",
    "Quadratic": "#5cc39a",
    "DirectedQuadratic": "#009e73",
    "ConvexDirectedQuadratic": "#d55e00",
    "DecisionHinges": "#8d6cc7",
    "DecisionRanking": "#5b3fa0",
}
_OTHER_COLOURS = ("#a8763e", "#4f9d9d", "#b3588a", "#7f9a2c", "#5f79c9")


def method_colours(methods: Iterable[str]) -> dict[str, str]:
    """Return a colour for each method, a fixed one for those that are well known."""
    names = list(dict.fromkeys(methods))
    others = [name for name in names if name not in _METHOD_COLOURS]
    spare = {name: _OTHER_COLOURS[i % len(_OTHER_COLOURS)] for i, name in enumerate(others)}
    return {name: _METHOD_COLOURS.get(name) or spare[name] for name in names}


def in_method_order(methods: Iterable[str]) -> list[str]:
    """Return well-known methods in their usual order, then the others as they come."""
    places = {name: place for place, name in enumerate(_METHOD_COLOURS)}
    return sorted(dict.fromkeys(methods), key=lambda name: places.get(name, len(places)))


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


PART_COLOURS = dict(zip(PARTS, ("#3d7fb8", "#e3a857", "#98a2ad"), strict=True))
"""One colour for each part."""

_BAR_HEIGHT = 0.3  # inches


@style()
def draw_time(results: Sequence[Result]) -> Figure:
    """Draw stacked bars of seconds with their sums, the first on top."""
    figure = new_figure(4.6, _BAR_HEIGHT * len(results) + 0.75)
    axes = figure.subplots()
    for row, result in enumerate(results):
        left = 0.0
        for part, colour in PART_COLOURS.items():
            width = result.seconds.get(part, 0.0)
            axes.barh(row, width, left=left, height=0.62, color=colour)
            left += width
        axes.annotate(
            in_seconds(left),
            (left, row),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=INK,
        )
    axes.set_yticks(range(len(results)), [shortened(result.method) for result in results])
    axes.set_ylim(len(results) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.margins(x=0.14)
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds of one core, per seed")
    return figure


def in_seconds(value: float) -> str:
    """Return seconds as text."""
    return f"{value:.1f} s" if value < 10 else f"{value:,.0f} s"
