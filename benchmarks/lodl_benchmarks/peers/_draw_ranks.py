"""The picture of all linear tasks together: a performance profile and mean ranks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lodl._typing import Array
from lodl.report.style import INK, MUTED, new_figure, style
from lodl_benchmarks.peers._draw import colour_of
from lodl_benchmarks.peers._methods import OURS
from lodl_benchmarks.peers._summary import (
    complete_methods,
    mean_rank_interval,
    profile,
    ranks,
    scores,
)
from lodl_benchmarks.peers._tasks import LINEAR

_WORST = 2.0  # largest factor that the profile shows
_DASHES: Any = ("-", "--", "-.", ":", (0, (1, 4)))  # of methods that share a colour


@style()
def draw_ranks(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw how often a method is within a factor of the best, and mean ranks with intervals.

    Only methods with all linear tasks of the rows on all seeds are shown.
    """
    by_task = {name: found for name, found in scores(rows).items() if name in LINEAR}
    places = ranks(by_task, complete_methods(by_task))
    ordered = sorted(places, key=lambda method: float(places[method].mean()))
    dashes: dict[str, Any] = {}
    for method in ordered:
        n_same = sum(colour_of(other) == colour_of(method) for other in dashes)
        dashes[method] = _DASHES[n_same % len(_DASHES)]
    figure = new_figure(11.0, 4.2)
    left, right = figure.subplots(1, 2)
    _profile(left, {name: profile(by_task, ordered)[name] for name in ordered}, dashes)
    _ranks(right, {name: places[name] for name in ordered})
    return figure


def _profile(axes: Axes, ratios: Mapping[str, Array], dashes: Mapping[str, Any]) -> None:
    for method, values in ratios.items():
        shown = values[values <= _WORST]
        shares = np.arange(len(shown) + 1) / len(values)
        axes.step(
            np.concatenate([[1.0], shown, [_WORST]]),
            np.append(shares, shares[-1]),
            where="post",
            color=colour_of(method),
            linestyle=dashes[method],
            linewidth=2.4 if method == OURS else 1.5,
            label=method,
        )
    axes.set_xlim(1, _WORST)
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("regret over that of the best method, at most")
    axes.set_ylabel("share of tasks")
    axes.legend(loc="lower right", fontsize=8.5)


def _ranks(axes: Axes, places: Mapping[str, Array]) -> None:
    for height, (method, of_method) in enumerate(places.items()):
        mean, (low, high) = float(of_method.mean()), mean_rank_interval(of_method)
        colour = colour_of(method)
        axes.plot([low, high], [height, height], color=colour, linewidth=1.8)
        axes.plot(mean, height, "o", color=colour, markersize=8 if method == OURS else 6)
        axes.annotate(
            f"{mean:.1f}", (high, height), (6, -3), textcoords="offset points", color=MUTED
        )
    axes.set_yticks(range(len(places)), list(places), color=INK)
    axes.invert_yaxis()
    axes.set_xlim(0.8, len(places) + 0.6)
    axes.set_xlabel("mean rank over tasks, 95 % interval")
