from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lodl_benchmarks.pages import MeanStd
from lodl_benchmarks.paper import draw_table3
from lodl_benchmarks.paper._table3 import DomainErrors, MethodErrors, Trend, Trends, WithoutOne

NO_LINE = Trends(None, None, None, None)
LINE = Trends(Trend(-2.0, 0.9, None, -0.8, 5), None, None, None)


def method(empirical, gaussian, quality):
    runs = {"empirical": empirical, "gaussian": gaussian, "quality": quality}
    means = {name: MeanStd(np.mean(values), 0.0) for name, values in runs.items()}
    return MethodErrors(**means, runs=runs, paper=None)


@pytest.fixture
def domains():
    """Two domains: one with a line over the first error only, one without any."""
    methods = {
        "NN": method([0.1, 0.3], [0.2, 0.2], [0.6, 0.4]),
        "Quadratic": method([0.05], [0.2], [0.8]),
    }
    return [
        DomainErrors("Domain A", "euro", methods, {"empirical": LINE, "gaussian": NO_LINE}),
        DomainErrors(
            "Domain B",
            "km",
            {"Mine": method([1.0], [2.0], [0.5])},
            {"empirical": NO_LINE, "gaussian": NO_LINE},
        ),
    ]


def points_of(ax):
    return np.concatenate([np.asarray(dots.get_offsets()) for dots in ax.collections]).tolist()


def test_every_run_and_every_mean_is_a_point(domains):
    upper_a, upper_b, lower_a, lower_b = draw_table3(domains).axes
    runs_and_means = [[0.1, 0.6], [0.3, 0.4], [0.2, 0.5], [0.05, 0.8], [0.05, 0.8]]
    assert np.allclose(points_of(upper_a), runs_and_means)
    assert points_of(upper_b) == [[1.0, 0.5]] * 2
    assert points_of(lower_a)[0] == [0.2, 0.6]
    assert points_of(lower_b) == [[2.0, 0.5]] * 2


def test_the_line_starts_at_no_error_and_its_numbers_are_said(domains):
    upper_a, upper_b, lower_a, _ = draw_table3(domains).axes
    data = [np.asarray(line.get_data()) for line in upper_a.lines]
    ((x, y),) = [(x, y) for x, y in data if x[0] == 0 < y[0] < 1]
    assert y == pytest.approx(0.9 - 2 * x)
    (said,) = upper_a.texts
    assert "-0.80" in said.get_text()
    assert "0.90" in said.get_text()
    for ax in (upper_b, lower_a):
        assert not ax.texts
        assert len(ax.lines) == 1  # quality 1


def test_axes_legend_and_titles_tell_what_is_shown(domains):
    figure = draw_table3(domains)
    upper_a, upper_b, lower_a, _ = figure.axes
    assert [ax.get_title(loc="left") for ax in (upper_a, upper_b)] == ["Domain A", "Domain B"]
    assert "predictions" in upper_a.get_xlabel()
    assert "labels" in lower_a.get_xlabel()
    assert "(km)" in upper_b.get_xlabel()
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["NN", "Quadratic", "Mine", "line through the means"]


def test_the_papers_means_are_crosses_in_the_colours_of_the_methods(domains):
    paper = {"empirical": 0.9, "gaussian": 0.3, "quality": 0.7}
    published = {name: MeanStd(mean, 0.0) for name, mean in paper.items()}
    methods = domains[0].methods
    methods["Quadratic"] = replace(methods["Quadratic"], paper=published)
    figure = draw_table3(domains)
    upper_a, _, lower_a, _ = figure.axes
    assert points_of(upper_a)[-1] == [0.9, 0.7]
    assert upper_a.get_xlim()[1] > 0.9
    assert points_of(lower_a)[-1] == [0.3, 0.7]
    assert figure.legends[0].get_texts()[-1].get_text() == "the paper's means"


def test_no_error_is_in_the_picture(domains):
    for ax in draw_table3(domains).axes:
        assert ax.get_xlim()[0] < 0 < ax.get_xlim()[1]


def test_means_that_coincide_are_both_seen(domains):
    methods = {name: method([0.1], [0.2], [0.6]) for name in ("NN", "Quadratic", "Mine")}
    domains[1] = replace(domains[1], methods=methods)
    means: Any = draw_table3(domains).axes[1].collections[1::2]  # after the runs of each
    assert len(means) == 3
    assert all(not mean.get_facecolor().size for mean in means)
    assert len({mean.get_paths()[0].vertices.shape for mean in means}) == 3


@pytest.mark.parametrize(
    ("errors", "scale"),
    [
        ([0.1, 0.2, 0.9], "log"),
        ([0.1, 0.2, 0.5], "linear"),
        ([0.0, 0.2, 0.9], "linear"),  # 0 has no logarithm
        ([0.1, 0.9], "linear"),  # either may be the one far off
    ],
)
def test_an_error_far_above_all_others_makes_the_axis_logarithmic(domains, errors, scale):
    methods = {f"M{e}": method([e], [e], [0.5]) for e in errors}
    domains[0] = replace(domains[0], methods=methods)
    ax = draw_table3(domains).axes[0]
    assert ax.get_xscale() == scale
    x, y = np.asarray(ax.lines[-1].get_data())
    assert y == pytest.approx(0.9 - 2 * x)
    assert x[0] < 0.1


def test_the_correlation_without_one_method_is_said_where_it_is_known(domains):
    domains[0].trends["empirical"] = replace(LINE, without_one=WithoutOne("NN", 0.123))
    (said,) = draw_table3(domains).axes[0].texts
    assert said.get_text().endswith("correlation -0.80\n(0.12 without NN)")
