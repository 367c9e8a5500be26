"""Draws table 3: decision quality against the errors of learned losses."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from lodl.report.page import shortened
from lodl.report.style import INK, MUTED, new_figure, style
from lodl_benchmarks.pages import method_colours
from lodl_benchmarks.paper._table3 import DomainErrors, MethodErrors, Trends, quality_in_words

_ERRORS = {"empirical": "error at the models' predictions", "gaussian": "error around the labels"}
_MARKERS = "os^DvPXph*"  # hollow and of different shapes: means that coincide are both seen
_PAPER_MARK = "x"
_STRETCH = 3.0  # times the next: a mean so far off leaves no room for the others


@style()
def draw_table3(domains: Sequence[DomainErrors]) -> Figure:
    """Draw decision quality over the error at predictions, and over the error around labels.

    A column for each domain, or one row for a single one; dots are runs, hollow marks the means of
    methods, through which the straight line is fitted, crosses the paper's means. Where one mean is
    far above all others, the axis of errors is logarithmic, and the straight line bent.
    """
    colours = method_colours(name for domain in domains for name in domain.methods)
    markers = {name: _MARKERS[i % len(_MARKERS)] for i, name in enumerate(colours)}
    n_rows, n_columns = (len(_ERRORS), len(domains)) if len(domains) > 1 else (1, len(_ERRORS))
    figure = new_figure(0.6 + 3.1 * n_columns, 1.0 + 2.7 * n_rows)
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for column, domain in zip(axes.reshape(len(_ERRORS), -1).T, domains, strict=True):
        for ax, error in zip(column, _ERRORS, strict=True):
            ax.axhline(1, color=MUTED, linewidth=1, linestyle=":")
            ax.locator_params(axis="y", nbins=5)  # labels of few digits: there is room for them
            for name, method in domain.methods.items():
                _draw_method(ax, method, error, {"color": colours[name], "marker": markers[name]})
            _scale_errors(ax, domain.methods.values(), error)
            _draw_trend(ax, domain.trends[error])
            ax.set_xlabel(f"{_ERRORS[error]}\n({domain.unit})")
        column[0].set_title(domain.title, pad=32)
    for ax in axes[:, 0]:
        ax.set_ylabel("normalised decision quality")
    marks = [
        Line2D([], [], linestyle="", fillstyle="none", color=colours[n], marker=markers[n], label=n)
        for n in colours
    ]
    marks.append(Line2D([], [], color=INK, linewidth=1.2, label="line through the means"))
    if any(method.paper for domain in domains for method in domain.methods.values()):
        label = "the paper's means"
        marks.append(Line2D([], [], linestyle="", color=MUTED, marker=_PAPER_MARK, label=label))
    figure.legend(handles=marks, loc="outside lower center", ncols=3)
    return figure


def _draw_method(ax: Axes, method: MethodErrors, error: str, mark: dict[str, Any]) -> None:
    runs, mean = method.runs, (method.mean_std(error).mean, method.quality.mean)
    ax.scatter(runs[error], runs["quality"], s=10, color=mark["color"], alpha=0.4, linewidths=0)
    ax.scatter(*mean, s=64, facecolors="none", linewidths=1.5, zorder=3, **mark)
    if method.paper is not None:
        place = method.paper[error].mean, method.paper["quality"].mean
        ax.scatter(*place, s=36, color=mark["color"], marker=_PAPER_MARK, linewidths=1.8, zorder=3)


def _scale_errors(ax: Axes, methods: Collection[MethodErrors], error: str) -> None:
    means = sorted(method.mean_std(error).mean for method in methods)
    drawn = [value for method in methods for value in method.runs[error]]
    drawn += [method.paper[error].mean for method in methods if method.paper]
    if len(means) > 2 and min(drawn) > 0 and means[-1] > _STRETCH * means[-2]:
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_locator(NullLocator())
        return
    right = 1.07 * max(drawn)
    ax.set_xlim(-0.04 * right, right)
    ax.locator_params(axis="x", nbins=4)


def _draw_trend(ax: Axes, trends: Trends) -> None:
    """Draw the line from no error on, as far as the points' own range goes."""
    trend, without = trends.of_methods, trends.without_one
    if trend is None or not trend.is_shown:
        return
    left, right = ax.get_xlim()
    steps = np.geomspace if ax.get_xscale() == "log" else np.linspace
    x = steps(left if ax.get_xscale() == "log" else 0.0, right, 100)
    ax.set_xlim(left, right)
    ax.set_ylim(ax.get_ylim())  # the points decide: a line that hardly fits may be steep
    y = trend.intercept + trend.slope * x
    ax.plot(x, np.where(y <= 1, y, np.nan), color=INK, linewidth=1.2, zorder=2)
    at_zero = quality_in_words(trend.intercept)
    said = f"quality {at_zero} at no error, correlation {trend.correlation:z.2f}"
    if without is not None:
        said += f"\n({without.correlation:z.2f} without {shortened(without.method)})"
    ax.text(0, 1.03, said, transform=ax.transAxes, fontsize=9)
