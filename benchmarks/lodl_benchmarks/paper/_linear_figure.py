"""The figure of the Linear Model: true and learned mappings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lodl.report import Cell, Table
from lodl.report.style import INK, MUTED, new_figure, style
from lodl_benchmarks.pages import MeanStd, mean_cell, method_colours

_Numbers: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class LinearSettings:
    """The experiment behind some of the lines: a row of the run, without its results."""

    method: str
    seed: int
    n_initialisations: int
    n_samples: int
    sampler: str
    surrogate: str | None
    training: Mapping[str, float | None]
    data: str
    versions: Mapping[str, str]


@dataclass(frozen=True)
class MethodLines:
    """The models of one method."""

    name: str  # the method
    y_hat: tuple[_Numbers, ...]  # `y_hat[m][i]` is the prediction of model m for the feature `x[i]`
    quality: _Numbers  # normalised test decision quality of every model
    n_rising: int  # how many models predict more for the largest feature than for the smallest


@dataclass(frozen=True)
class LinearFigure:
    """The contents of `figure-linear.json`: features `x`, true utilities `y`, and the models."""

    settings: tuple[LinearSettings, ...]
    x: _Numbers
    y: _Numbers
    methods: tuple[MethodLines, ...]

    def table(self) -> Table:
        """Return how many models of each method rise, and what their decisions are worth."""
        colours = method_colours(method.name for method in self.methods)
        rows = tuple(
            (
                Cell(method.name, colour=colours[method.name]),
                Cell(f"{method.n_rising} of {len(method.quality)}", method.n_rising),
                mean_cell(MeanStd.of(method.quality)),
            )
            for method in self.methods
        )
        columns = ("trained on", "lines that rise", "decision quality")
        return Table("What models of the Linear Model learn", columns, rows)


@style()
def draw_linear(data: LinearFigure) -> Figure:
    """Draw the true utility of an item and every model's prediction, a panel per method."""
    methods = data.methods
    colours = method_colours(method.name for method in methods)
    figure = new_figure(2.75 * len(methods), 3.5)
    row = figure.subplots(1, len(methods), sharex=True, sharey=True, squeeze=False)[0]
    for axes, method in zip(row, methods, strict=True):
        _draw_models(axes, data, method, colours[method.name])
    row[0].set_ylabel("utility of the item")
    _label_curves(row[0], data)
    figure.supxlabel("feature x of an item", fontsize=10)
    figure.suptitle(
        "The item with the largest prediction is chosen. A line that rises chooses the largest x, "
        "nearly always the best item;\none that falls chooses the smallest, nearly always the "
        "worst.",
        x=0.01,
        ha="left",
        fontsize=11,
    )
    return figure


def _draw_models(axes: Axes, data: LinearFigure, method: MethodLines, colour: str) -> None:
    x, y, y_hat = (np.asarray(values) for values in (data.x, data.y, method.y_hat))
    axes.plot(x, y, color=INK, linewidth=1.6)
    axes.plot(x[[0, -1]], y[[0, -1]], "o", color=INK, markersize=5)
    axes.plot(x, y_hat.T, color=colour, linewidth=1.3, alpha=max(0.25, 1 / np.sqrt(len(y_hat))))
    axes.set_title(f"{method.name}\n\n", fontsize=10)
    axes.text(
        0,
        1.03,
        f"{method.n_rising} of {len(y_hat)} lines rise\n"
        f"decision quality {MeanStd.of(method.quality)}",
        color=MUTED,
        fontsize=9,
        transform=axes.transAxes,
    )
    axes.set_xticks([-1, 0, 1])


def _label_curves(axes: Axes, data: LinearFigure) -> None:
    """Name the two kinds of lines where they are."""
    x, y = np.asarray(data.x), np.asarray(data.y)
    top = int(y[: len(y) // 2].argmax())
    axes.annotate(
        "true utility", (x[top], y[top]), xytext=(0, 5), textcoords="offset points", ha="center"
    )
    for end, name, side, gap in ((-1, "best item", "right", -7), (0, "worst item", "left", 7)):
        axes.annotate(
            name,
            (x[end], y[end]),
            xytext=(gap, 0),
            textcoords="offset points",
            ha=side,
            va="center",
            color=MUTED,
            fontsize=9,
        )
    n_models = len(data.methods[0].y_hat)
    axes.text(0.05, 0.3, f"{n_models} models", fontweight="bold", va="bottom")
