"""Learned losses beside the true regret, along a line through a label."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from lodl.report._style import INK, MUTED, method_colours, new_figure, shortened, style

_ROOM = 1.6  # the height of the axes in units of the largest regret: beyond, losses are cut off


@style()
def draw_slice(info: Mapping[str, Any]) -> Figure:
    """Draws one of the slices that `lodl.evaluation.loss_slices` gives."""
    figure = new_figure(3.5, 2.5)
    axes = figure.subplots()
    offsets, regret = info["offsets"], info["regret"]
    axes.axvline(0, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.plot(offsets, regret, color=INK, linewidth=2.6)
    colours = method_colours(info["loss"])
    for name, values in info["loss"].items():
        axes.plot(offsets, values, color=colours[name], linewidth=1.6)
    highest = max(regret)
    if highest > 0:
        axes.set_ylim(-0.04 * _ROOM * highest, _ROOM * highest)
    axes.set_ylabel("regret")
    axes.set_title(shortened(f"instance {info['instance']}"), fontsize=10)
    axes.set_xlabel(shortened(_along(info["direction"]), 40))
    return figure


def _along(direction: str) -> str:
    if direction.startswith("towards"):
        return f"way {direction} (= 1)"
    return f"error of {direction}"
