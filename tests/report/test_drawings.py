"""Drawings of a fit."""

import numpy as np
import pytest

from lodl.report import MEAN_LABEL, Evaluation, plots
from lodl.report.style import new_figure


@pytest.mark.parametrize(
    ("regrets", "is_zero_at_the_edge"),
    [((3.0, 1.0) * 5, True), ((-3.0, -1.0) * 5, False), ((2.0,), True)],
    ids=["positive", "negative", "one instance"],
)
def test_bars_are_drawn_whole_whatever_the_regrets(regrets, is_zero_at_the_edge, fit_result):
    axes = new_figure(4.0, 2.0).subplots()
    plots.regrets(fit_result(regrets, regrets), ax=axes)
    low, high = axes.get_xlim()
    assert (low == 0) == is_zero_at_the_edge
    ends = np.concatenate(
        [bar.get_extents().transformed(axes.transData.inverted()).intervalx for bar in axes.patches]
    )
    assert low <= ends.min() + 1e-9
    assert ends.max() <= high + 1e-9


def rows_of_gain(**means):
    """Returns the names of the rows that are drawn, and the ends of their intervals."""
    rng = np.random.default_rng(0)
    rows = {name: mean + 0.1 * rng.random(20) for name, mean in means.items()}
    axes = new_figure(4.0, 2.0).subplots()
    evaluation = Evaluation.of(rows, np.ones(20))
    plots.gain(evaluation, ax=axes)
    lines = [line.get_xdata() for line in axes.lines[1::2]]
    return evaluation, [label.get_text() for label in axes.get_yticklabels()], lines


def test_the_gain_is_drawn_with_its_paired_interval():
    evaluation, names, (interval,) = rows_of_gain(plain=2.0, model=1.0)
    gain = evaluation.gain("plain")
    assert names == ["less than plain"]
    assert interval == pytest.approx([gain.low, gain.high])


def test_the_mean_label_is_drawn_only_if_nothing_simple_is_better():
    _, names, _ = rows_of_gain(**{"plain": 2.0, MEAN_LABEL: 9.0, "model": 1.0})
    assert names == ["less than plain"]
    _, names, _ = rows_of_gain(**{"plain": 2.0, MEAN_LABEL: 1.5, "model": 1.0})
    assert names == ["less than plain", f"less than {MEAN_LABEL}"]
