"""The figure of the losses in the example of two agents: each as a map and along one line."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patheffects import withStroke

from lodl.report.style import INK, MUTED, new_figure, style
from lodl_benchmarks.pages import method_colours

_N_COLUMNS = 5
_CONTOURS = (0.25, 0.5, 0.75, 1.0)
_TICKS = (-1, 0, 1, 2)
_ARROW = 0.75  # length, in units of the predictions
_TITLES = {
    "decision loss": ("True decision loss", "what counts"),
    "2-stage": ("Squared error", "2-stage"),
    "linear": ("ŷ_A - ŷ_B", "handcrafted in the paper"),
    "DFL": ("Soft top-1", "handcrafted, for DFL"),
}
_LEARNED = "learned from samples"
# A colour map is the same on a dark page, so what is drawn on it does not follow the page.
_DARK, _GREY, _LIGHT = "#101215", "#5b6167", "#ffffff"
_HALO = [withStroke(linewidth=3, foreground=_LIGHT)]


_Numbers: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class LossesSettings:
    """Settings of the figure of the losses."""

    n_samples: int  # points from which the losses are learned
    scale: float = 1.0  # standard deviation of the points around the label
    epsilon: float = 0.5  # softness of the handcrafted surrogate
    n_grid: int = 61  # predictions along each axis of a surface
    seed: int = 0  # random seed for the points
    # Versions of the packages; under others the figure is made again.
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LossShape:
    """One loss around the label (0, 1)."""

    name: str  # its name
    kind: str  # "true", "handcrafted" or "learned"
    # `surface[b][a]` is the loss of the prediction (axis[a], axis[b]).
    surface: tuple[_Numbers, ...]
    on_line: _Numbers  # `on_line[i]` is the loss of the prediction (line[i], 1 - line[i])
    descent: _Numbers  # the negative gradient at the swapped prediction, where training would go


@dataclass(frozen=True)
class LossesFigure:
    """The contents of `figure-losses.json`.

    The line runs through the label, at 0, and the swapped prediction (1, 0), at 1.
    """

    settings: LossesSettings
    label: _Numbers
    swapped: _Numbers
    axis: _Numbers
    line: _Numbers
    losses: tuple[LossShape, ...]


@style()
def draw_losses(data: LossesFigure) -> Figure:
    """Draw every loss over the two predictions, and below it along the dashed line."""
    losses = data.losses
    colours = method_colours(loss.name for loss in losses) | {"decision loss": INK}
    n_rows = -(-len(losses) // _N_COLUMNS)
    figure = new_figure(11, 3.6 * n_rows + 0.5)
    grid = figure.subplots(
        2 * n_rows, _N_COLUMNS, sharex=True, squeeze=False, height_ratios=[2.1, 1] * n_rows
    )
    for i, loss in enumerate(losses):
        row, column = divmod(i, _N_COLUMNS)
        image = _draw_map(grid[2 * row, column], data, loss)
        _draw_line(grid[2 * row + 1, column], data, loss, colours[loss.name])
    for unused in grid[-2:, len(losses) - _N_COLUMNS * (n_rows - 1) :].flat:
        unused.set_axis_off()
    _label(grid)
    figure.supxlabel("prediction for A, ŷ_A", fontsize=10)
    figure.colorbar(image, ax=grid, extend="both", aspect=40, pad=0.025, label="loss")
    figure.suptitle(
        "Two agents, A and B, with disutilities 0 and 1 (★): the one with the lower prediction is "
        "picked.\nWhere does gradient descent lead from the swapped prediction (●)? Below each map "
        "the loss along the dashed line; grey: the true one.",
        x=0.01,
        ha="left",
        fontsize=11,
    )
    return figure


def _draw_map(axes: Axes, data: LossesFigure, loss: LossShape) -> AxesImage:
    """Draw the loss over both predictions, and the way down from the swapped one."""
    axis, line, surface = data.axis, np.asarray(data.line), np.asarray(loss.surface)
    title, subtitle = _TITLES.get(loss.name, (loss.name, _LEARNED))
    axes.set_title(f"{title}\n", fontsize=9.5)
    axes.text(0, 1.03, subtitle, color=MUTED, fontsize=8.5, transform=axes.transAxes)
    image = axes.imshow(
        surface,
        origin="lower",
        extent=(axis[0], axis[-1], axis[0], axis[-1]),
        cmap="YlGnBu",
        vmin=0,
        vmax=1,
        interpolation="bilinear",
    )
    axes.contour(axis, axis, surface, levels=_CONTOURS, colors=_DARK, linewidths=0.5, alpha=0.6)
    axes.plot(line, 1 - line, color=_GREY, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.plot(*data.label, "*", color=_DARK, markeredgecolor=_LIGHT, markersize=11)
    _draw_descent(axes, np.asarray(data.swapped), np.asarray(loss.descent))
    axes.plot(*data.swapped, "o", color=_DARK, markeredgecolor=_LIGHT, markersize=6.5)
    axes.set(xticks=_TICKS, yticks=_TICKS)
    axes.grid(visible=False)
    return image


def _draw_descent(axes: Axes, start: Any, descent: Any) -> None:
    length = np.hypot(*descent)
    if length == 0:
        axes.text(start[0], start[1] - 0.2, "no slope", color=_LIGHT, ha="center", va="top")
        return
    arrow = axes.annotate(
        "",
        start + _ARROW * descent / length,
        xytext=start,
        arrowprops={"arrowstyle": "-|>", "color": _DARK, "linewidth": 1.6, "path_effects": _HALO},
    )
    arrow.set_in_layout(False)


def _draw_line(axes: Axes, data: LossesFigure, loss: LossShape, colour: str) -> None:
    """Draw the loss along the line from the label through the swapped prediction."""
    true = next(loss for loss in data.losses if loss.name == "decision loss")
    if loss is not true:
        axes.plot(data.line, true.on_line, color=MUTED, linewidth=1)
    axes.plot(data.line, loss.on_line, color=colour)
    axes.set(ylim=(-0.15, 1.6), yticks=(0, 1), xticks=_TICKS)


def _label(grid: Any) -> None:
    """Label the vertical axes, in the first column only."""
    for maps, lines in zip(grid[::2], grid[1::2], strict=True):
        maps[0].set_ylabel("prediction for B, ŷ_B")
        lines[0].set_ylabel("loss")
        for axes in (*maps[1:], *lines[1:]):
            axes.tick_params(labelleft=False)
