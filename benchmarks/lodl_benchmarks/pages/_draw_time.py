"""Where the time of each method went, in one domain."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from lodl.report.parts import INK, new_figure, shortened, style
from lodl_benchmarks.pages._results import Result
from lodl_benchmarks.pages._rows import PARTS

PART_COLOURS = dict(zip(PARTS, ("#3d7fb8", "#e3a857", "#98a2ad"), strict=True))
"""One colour for each part."""

_BAR_HEIGHT = 0.3  # inches


@style()
def draw_time(results: Sequence[Result]) -> Figure:
    """Draw stacked bars of seconds with their sums, the first on top.

    Args:
        results: The results of a domain in `results_of(rows).compared`.
    """
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
