import re
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from lodl._json import from_json
from lodl.report.style import INK, MUTED, PAPER, inline_svg
from lodl_benchmarks.pages import method_colours
from lodl_benchmarks.paper import (
    CostFigure,
    LinearFigure,
    LossesFigure,
    draw_cost,
    draw_linear,
    draw_losses,
)


def texts(figure):
    """Returns all that is written on a figure."""
    return "\n".join(text.get_text() for text in figure.findobj(Text) if text.get_visible())


def losses_figure():
    axis = np.linspace(-1, 2, 7)
    a, b = np.meshgrid(axis, axis)
    surfaces = {"decision loss": (a > b) * 1.0, "2-stage": a**2, "Quadratic": (a - b) ** 2}
    values = {
        "settings": {"n_samples": 1},
        "label": [0, 1],
        "swapped": [1, 0],
        "axis": axis.tolist(),
        "line": axis.tolist(),
        "losses": [
            {
                "name": name,
                "kind": "learned",
                "surface": surface.tolist(),
                "on_line": np.fliplr(surface).diagonal()[::-1].tolist(),
                "descent": [0, 0] if name == "decision loss" else [-1, 1],
            }
            for name, surface in surfaces.items()
        ],
    }
    return from_json(LossesFigure, values)


def linear_figure():
    x = np.linspace(-1, 1, 9)
    values = {
        "settings": [],
        "x": x.tolist(),
        "y": (10 * x**3 - 6.5 * x).tolist(),
        "methods": [
            {
                "name": "2-stage",
                "y_hat": [(-x).tolist()] * 3,
                "quality": [-0.9, -0.9, -0.9],
                "n_rising": 0,
            },
            {
                "name": "DFL",
                "y_hat": [x.tolist(), (-x).tolist()],
                "quality": [1.0, -1.0],
                "n_rising": 1,
            },
        ],
    }
    return from_json(LinearFigure, values)


def cost_figure(break_even=5.0):
    names = ("2-stage", "DFL", "ConvexDirectedQuadratic")
    cores, models = list(range(1, 65)), list(range(1, 51))
    curves = {"2-stage": [2.0] * 64, "DFL": [12.0] * 64, names[2]: [4 + 40 / c for c in cores]}
    domain = {
        "domain": "small",
        "title": "Small",
        "counts": {},
        "units": {},
        "fit_steps": 1.0,
        "training": {},
        "serial": 0.0,
        "break_even_models": None,
        "measured": [
            {"cores": n, "sampling": 1.0, "fitting": 1.0}
            | {"seconds": dict(zip(names, seconds, strict=True))}
            for n, seconds in ((1, (2, 12, 44)), (2, (2, 12, 26)))
        ],
        "by_cores": {"cores": cores, "seconds": curves},
        "by_models": {"models": models, "seconds": {n: c[:50] for n, c in curves.items()}},
        "formula": dict(zip(names, (2, 11, 43), strict=True)),
        "break_even": break_even,
    }
    settings = {"n_samples": 1, "n_steps": 1, "cores": [1], "domains": [], "versions": {}}
    values = {"settings": settings, "machine": {}, "domains": [domain, domain]}
    return from_json(CostFigure, values)


FIGURES: dict[str, Any] = {
    "losses": (draw_losses, losses_figure),
    "linear": (draw_linear, linear_figure),
    "cost": (draw_cost, cost_figure),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_drawn_the_same_twice_with_text_as_text(name):
    draw, figure = FIGURES[name]
    first, second = (inline_svg(draw(figure()), "f", label="x") for _ in range(2))
    assert first == second
    assert re.search(r"<text[^>]*>[^<]*[a-z]", first)


def test_every_loss_has_a_map_in_one_scale_of_colours_and_a_line_below():
    figure = draw_losses(losses_figure())
    images = [image for axes in figure.axes for image in axes.images]
    assert len(images) == 3
    assert {image.get_clim() for image in images} == {(0, 1)}
    np.testing.assert_array_equal(images[2].get_array(), losses_figure().losses[2].surface)
    written = texts(figure)
    for word in ("True decision loss", "Squared error", "Quadratic", "ŷ_A", "ŷ_B", "loss"):
        assert word in written
    assert written.count("no slope") == 1


def test_the_true_loss_is_behind_every_other_line():
    figure = draw_losses(losses_figure())
    true = losses_figure().losses[0].on_line
    lines = [axes.lines for axes in figure.axes if axes.get_ylim() == (-0.15, 1.6)]
    assert len(lines) == 3
    assert all(tuple(of_loss[0].get_ydata()) == true for of_loss in lines)
    assert [len(of_loss) for of_loss in lines] == [1, 2, 2]


def test_every_model_of_the_linear_model_is_a_line_in_its_methods_colour():
    figure = draw_linear(linear_figure())
    colours = method_colours(["2-stage", "DFL"])
    for axes, name, n_models in zip(figure.axes, colours, (3, 2), strict=True):
        drawn = [line for line in axes.lines if line.get_color() == colours[name]]
        assert len(drawn) == n_models
    written = texts(figure)
    assert "0 of 3 lines rise\ndecision quality -0.90 ± 0.00" in written
    assert "1 of 2 lines rise\ndecision quality 0.00 ± 1.00" in written
    for word in ("feature x of an item", "utility of the item", "true utility", "3 models"):
        assert word in written


def test_costs_are_dots_where_measured_and_dashed_where_computed():
    figure = draw_cost(cost_figure())
    left, right = figure.axes[:2]
    for axes, n_dots in ((left, 2), (right, 1)):
        dots = [line for line in axes.lines if line.get_marker() == "o"]
        assert [len(line.get_xdata()) for line in dots] == [n_dots] * 3
        curves = [line for line in axes.lines if len(line.get_xdata()) >= 50]
        assert len(curves) == 3
        assert all(line.is_dashed() for line in curves)
    assert left.get_xscale() == left.get_yscale() == right.get_yscale() == "log"
    written = texts(figure)
    for word in ("cores", "seconds for a model", "computed", "LODL", "DFL", "2-stage", "Small"):
        assert word in written


@pytest.mark.parametrize(("break_even", "is_marked"), [(5.0, True), (None, False), (0.5, False)])
def test_the_break_even_is_marked_where_it_is_within_the_figure(break_even, is_marked):
    written = texts(draw_cost(cost_figure(break_even)))
    assert ("LODL below DFL\nfrom 5.0 cores" in written) is is_marked


@pytest.mark.parametrize("break_even", [1.1, 5.0, 28.0])
def test_the_break_even_is_told_above_all_that_is_drawn_and_within_the_axes(break_even):
    figure = draw_cost(cost_figure(break_even))
    figure.draw_without_rendering()
    left = figure.axes[0]
    (label,) = [text for text in left.texts if text.get_text().startswith("LODL below")]
    box, axes = label.get_window_extent(), left.get_window_extent()
    highest = left.transData.transform((1, 44))[1]  # of what was measured
    assert box.y0 > highest
    assert axes.x0 <= box.x0 < box.x1 <= axes.x1


def test_texts_beside_curves_are_in_ink_with_a_mark_of_the_method():
    right = draw_cost(cost_figure()).axes[1]
    assert {text.get_color() for text in right.texts} == {INK}
    marks = {to_hex(mark.get_facecolor()[0]) for mark in right.collections}
    assert marks == set(method_colours(["2-stage", "DFL", "ConvexDirectedQuadratic"]).values())
    written = draw_linear(linear_figure()).axes[0].texts
    assert {text.get_color() for text in written} <= {INK, MUTED}


def test_what_is_drawn_on_a_colour_map_does_not_follow_the_page():
    figure = draw_losses(losses_figure())
    for axes in figure.axes:
        if axes.images:
            marks = [line.get_color() for line in axes.lines]
            marks += [text.get_color() for text in axes.texts if text.get_text() == "no slope"]
            assert not set(marks) & {INK, MUTED, PAPER}


def test_the_linear_figure_is_also_a_table():
    table = linear_figure().table()
    rows = [[cell.text for cell in row] for row in table.rows]
    assert rows == [["2-stage", "0 of 3", "-0.90 ± 0.00"], ["DFL", "1 of 2", "0.00 ± 1.00"]]


def test_the_cost_figure_is_also_a_table():
    table = cost_figure().domains[0].table()
    assert table.columns == (
        *("Small", "1 core", "2 cores", "by the formula"),
        *("64 cores, computed", "50 models, computed"),
    )
    methods, *seconds = zip(*((cell.text for cell in row) for row in table.rows), strict=True)
    assert methods == ("2-stage", "DFL", "ConvexDirectedQuadratic (LODL)")
    assert [texts[-1] for texts in seconds] == ["44.0", "26.0", "43.0", "4.6", "4.8"]


def test_labels_at_close_ends_do_not_lie_on_one_another():
    right = draw_cost(cost_figure()).axes[1]
    heights = sorted(text.get_position()[1] for text in right.texts)
    assert len(heights) == 3
    assert min(np.diff(heights)) > 0.08
