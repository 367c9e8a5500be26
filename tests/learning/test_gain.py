import numpy as np
import pytest

from lodl.learning import Gain

REGRET = np.random.default_rng(0).exponential(size=200)


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (REGRET, "Keep squared error: no clear gain here."),
        (REGRET + 0.1, "Keep squared error"),
        (REGRET / 2, "Worth it: 50% of the regret of squared error is avoided."),
        (np.random.default_rng(3).permutation(REGRET) - 0.01, "Perhaps worth it: "),
    ],
)
def test_the_verdict_says_whether_it_is_worth_it(chosen, words):
    assert words in str(Gain.of(REGRET, chosen))


def test_the_interval_holds_the_difference_and_is_paired():
    gain = Gain.of(REGRET, REGRET - 1)
    assert gain.low == pytest.approx(1) == gain.high == gain.difference
    noisy = Gain.of(REGRET, REGRET * np.random.default_rng(1).random(200))
    assert noisy.low < noisy.difference < noisy.high


def test_instances_without_an_answer_are_left_out():
    unknown = np.where(np.arange(200) < 10, np.nan, REGRET - 1)
    assert Gain.of(REGRET, unknown).difference == pytest.approx(1)
