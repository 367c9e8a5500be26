"""Drawings of a fit."""

import numpy as np
import pytest

from lodl.report import plots
from lodl.report.style import new_figure


@pytest.mark.parametrize(
    ("regrets", "is_zero_at_the_edge"),
    [((3.0, 1.0) * 5, True), ((-3.0, -1.0) * 5, False), ((2.0,), True)],
    ids=["positive", "negative", "one instance"],
)
def test_the_gain_is_drawn_whole_whatever_the_regrets(regrets, is_zero_at_the_edge, fit_result):
    axes = new_figure(4.0, 2.0).subplots()
    plots.gain(fit_result(regrets, regrets), ax=axes)
    low, high = axes.get_xlim()
    assert (low == 0) == is_zero_at_the_edge
    ends = np.concatenate([np.asarray(line.get_xdata(), dtype=float) for line in axes.lines])
    assert low <= ends.min() <= ends.max() <= high
