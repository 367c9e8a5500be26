from dataclasses import replace
from typing import Any

import pytest

from lodl_benchmarks.pages import (
    MeanStd,
    Slice,
    draw_quality,
    draw_slice,
    draw_time,
    read_rows,
    results_of,
)


@pytest.fixture
def results(row, write_rows):
    folder = write_rows(
        row("web", "Optimal", 0, [1.0]),
        row("web", "Quadratic", 0, [0.9, 0.94]),
        row("web", "mine", 0, [0.5, 0.7]),
    )
    return results_of(read_rows(folder / "rows.jsonl")).compared["web"]


def labels(axes):
    return [text.get_text() for text in axes.get_yticklabels()]


def test_quality_shows_each_run_the_mean_and_the_published_number(results):
    published = [replace(result, published=MeanStd(0.93, 0.04)) for result in results]
    (axes,) = draw_quality(published).axes
    assert labels(axes) == ["Quadratic", "mine"]  # 1 is the line, not a method
    drawn = [line.get_xdata() for line in axes.lines]
    assert any(list(values) == [0.9, 0.94] for values in drawn)
    assert any(list(values) == [pytest.approx(0.92)] for values in drawn)
    assert any(list(values) == [0.93] for values in drawn)  # published
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first on top
    assert axes.get_xlabel()


def test_time_is_stacked_to_its_sum(results):
    timed = [result for result in results if result.method == "Quadratic"]
    (axes,) = draw_time(timed).axes
    patches: Any = axes.patches
    bars = [(bar.get_x(), bar.get_width()) for bar in patches]
    assert bars == [(0.0, 0.5), (0.5, 6.0), (6.5, 4.0)]
    assert [text.get_text() for text in axes.texts] == ["10 s"]
    assert "seconds" in axes.get_xlabel()


@pytest.mark.parametrize(
    ("direction", "label"),
    [
        ("coordinate 3", "error in coordinate 3"),
        ("towards the prediction", "towards the prediction (at 1)"),
    ],
)
def test_a_slice_shows_regret_and_every_loss(direction, label):
    losses = {"Quadratic": [1, 0, 1], "NN": [0, 0, 9]}
    (axes,) = draw_slice(Slice(4, direction, (-1, 0, 1), (0, 0, 2), losses)).axes
    drawn = [list(line.get_ydata()) for line in axes.lines]
    assert [0, 0, 2] in drawn
    assert [1, 0, 1] in drawn
    assert axes.get_ylim()[1] < 9  # the regret decides what is seen
    assert axes.get_xlabel() == label
    assert axes.get_title(loc="left") == "instance 4"
