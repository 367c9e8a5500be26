"""Draws table 3: decision quality against the errors of learned losses."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lodl.report._style import INK, MUTED, PAPER, method_colours, new_figure, style

_ERRORS = {"empirical": "error at the models' predictions", "gaussian": "error around the labels"}


@style()
def draw_fidelity(info: Mapping[str, Any]) -> Figure:
    """Returns decision quality over the error at predictions, and over that around labels.

    A column for each domain, or one row for a single one; small dots are runs, large ones the means
    of methods, through which the straight line is fitted.

    Args:
        info: What `lodl.experiments.table3_info` returns, with at least one domain.
    """
    domains = list(info["domains"].values())
    colours = method_colours(name for domain in domains for name in domain["methods"])
    n_rows, n_columns = (len(_ERRORS), len(domains)) if len(domains) > 1 else (1, len(_ERRORS))
    figure = new_figure(0.6 + 3.1 * n_columns, 1.0 + 2.7 * n_rows)
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for column, domain in zip(axes.reshape(len(_ERRORS), -1).T, domains, strict=True):
        for ax, error in zip(column, _ERRORS, strict=True):
            _draw_methods(ax, domain["methods"], error, colours)
            _draw_trend(ax, domain["trends"][error]["of_methods"])
            ax.set_xlabel(f"{_ERRORS[error]}\n({domain['unit']})")
        column[0].set_title(domain["title"], pad=20)
    for ax in axes[:, 0]:
        ax.set_ylabel("normalised decision quality")
    marks = [Line2D([], [], marker="o", linestyle="", color=c, label=n) for n, c in colours.items()]
    line = Line2D([], [], color=INK, linewidth=1.2, label="line through the means")
    figure.legend(handles=[*marks, line], loc="outside lower center", ncols=3)
    return figure


def _draw_methods(
    ax: Axes, methods: Mapping[str, Any], error: str, colours: Mapping[str, str]
) -> None:
    ax.axhline(1, color=MUTED, linewidth=1, linestyle=":")
    for name, method in methods.items():
        colour, runs = colours[name], method["runs"]
        mean = method[error]["mean"], method["quality"]["mean"]
        ax.scatter(runs[error], runs["quality"], s=10, color=colour, alpha=0.4, linewidths=0)
        ax.scatter(*mean, s=64, color=colour, edgecolors=PAPER, linewidths=1.2, zorder=3)
    right = 1.07 * max(max(method["runs"][error]) for method in methods.values())
    ax.set_xlim(-0.04 * right, right)
    ax.locator_params(axis="x", nbins=5)


def _draw_trend(ax: Axes, trend: Mapping[str, Any] | None) -> None:
    """Draws the line from no error on, as far as the points' own range goes."""
    if trend is None:
        return
    x = np.array([0.0, ax.get_xlim()[1]])
    ax.set_ylim(ax.get_ylim())  # the points decide: a line that hardly fits may be steep
    ax.plot(x, trend["intercept"] + trend["slope"] * x, color=INK, linewidth=1.2, zorder=2)
    ax.text(
        0,
        1.03,
        f"correlation {trend['correlation']:z.2f}, quality {trend['intercept']:z.2f} at no error",
        transform=ax.transAxes,
        fontsize=9,
    )
