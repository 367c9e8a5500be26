"""True and learned mappings of the Linear Model."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lodl.report._results import RunValues
from lodl.report._style import INK, MUTED, method_colours, new_figure, style


@style()
def draw_linear(info: Mapping[str, Any]) -> Figure:
    """Draws the true utility of an item and every model's prediction, a panel per method."""
    methods = info["methods"]
    colours = method_colours(method["name"] for method in methods)
    figure = new_figure(2.75 * len(methods), 3.5)
    row = figure.subplots(1, len(methods), sharex=True, sharey=True, squeeze=False)[0]
    for axes, method in zip(row, methods, strict=True):
        _draw_models(axes, info, method, colours[method["name"]])
    row[0].set_ylabel("utility of the item")
    _label_curves(row[0], info)
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


def _draw_models(
    axes: Axes, info: Mapping[str, Any], method: Mapping[str, Any], colour: str
) -> None:
    x, y, y_hat = (np.asarray(values) for values in (info["x"], info["y"], method["y_hat"]))
    axes.plot(x, y, color=INK, linewidth=1.6)
    axes.plot(x[[0, -1]], y[[0, -1]], "o", color=INK, markersize=5)
    axes.plot(x, y_hat.T, color=colour, linewidth=1.3, alpha=max(0.25, 1 / np.sqrt(len(y_hat))))
    axes.set_title(f"{method['name']}\n\n", fontsize=10)
    axes.text(
        0,
        1.03,
        f"{method['n_rising']} of {len(y_hat)} lines rise\n"
        f"decision quality {RunValues(tuple(method['quality']))}",
        color=MUTED,
        fontsize=9,
        transform=axes.transAxes,
    )
    axes.set_xticks([-1, 0, 1])


def _label_curves(axes: Axes, info: Mapping[str, Any]) -> None:
    """Names the two kinds of lines where they are."""
    x, y = np.asarray(info["x"]), np.asarray(info["y"])
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
    n_models = len(info["methods"][0]["y_hat"])
    axes.text(0.05, 0.3, f"{n_models} models", fontweight="bold", va="bottom")
