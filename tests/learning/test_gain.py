import numpy as np
import pytest
from scipy import stats

from lodl.learning._gain import Failures, Gain, standard_error

REGRET = np.random.default_rng(0).exponential(size=200)


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (REGRET, "Keep squared error: no clear gain here. Its regret is "),
        (REGRET + 0.1, "Keep squared error"),
        (REGRET / 2, "Use this model: regret "),
        (REGRET / 2, "(-50%, 95% interval of the gain "),
        (np.random.default_rng(3).permutation(REGRET) - 0.01, "Perhaps use this model: "),
        (
            np.random.default_rng(3).permutation(REGRET) - 0.01,
            "This may be chance; use more validation instances to find out.",
        ),
    ],
)
def test_the_verdict_says_what_to_do(chosen, words):
    assert words in str(Gain.of(REGRET, chosen))


def test_the_interval_is_of_95_percent_and_paired():
    gain = Gain.of(REGRET, REGRET - 1)
    assert gain.low == pytest.approx(1) == gain.high == gain.difference
    noisy = REGRET * np.random.default_rng(1).random(200)
    error = stats.sem(REGRET - noisy)
    low, high = stats.norm.interval(0.95, loc=(REGRET - noisy).mean(), scale=error)
    gain = Gain.of(REGRET, noisy)
    assert (gain.low, gain.high) == pytest.approx((low, high), rel=1e-4)


def test_a_regret_below_zero_is_named_as_inexactness_and_not_praised():
    rng = np.random.default_rng(0)
    before, after = rng.normal(-0.36, 0.01, size=200), rng.normal(-1.89, 0.01, size=200)
    text = str(Gain.of(before, after))
    assert text == (
        "Perhaps use this model: regret -0.36 -> -1.89 per instance, a difference that the "
        "solver's inexactness explains. The solver is not exact: 200 of 200 validation decisions "
        "are better than its own for the true label, by 1.89 per instance on average."
    )


def test_a_gain_beyond_the_solvers_inexactness_is_one_and_the_inexactness_is_named():
    after = np.where(np.arange(200) < 10, -0.2, REGRET / 2)
    text = str(Gain.of(REGRET, after))
    assert text.startswith("Use this model: regret ")
    assert "The solver is not exact: 10 of 200 validation decisions" in text
    assert "by 0.0100 per instance on average" in text


def test_rounding_of_a_solver_is_not_called_inexact():
    after = np.where(np.arange(200) < 10, -1e-8, REGRET / 2)
    assert "exact" not in str(Gain.of(REGRET, after))


@pytest.mark.parametrize(
    ("before", "after"), [(0.0, -1.0), (-1.0, -2.0), (0.5, -0.1), (0.0, 0.0), (-1.0, 0.0)]
)
def test_only_regrets_above_zero_are_compared_in_percent(before, after):
    text = str(Gain.of(np.full(20, before), np.full(20, after)))
    assert "(-" not in text
    assert "--" not in text


def test_a_regret_that_vanishes_is_a_gain_of_100_percent():
    assert "(-100%, " in str(Gain.of(REGRET, np.zeros(200)))


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (1, "1 validation instance is too few to judge: regret 3.00 -> 2.00 per instance."),
        (4, "4 validation instances are too few to judge: regret 3.00 -> 2.00 per instance."),
    ],
)
def test_a_handful_of_instances_cannot_tell(n, words):
    text = str(Gain.of(np.full(n, 3.0), np.full(n, 2.0)))
    assert text == f"{words} Use at least 5 validation instances, better 50."


def test_failed_decisions_are_part_of_the_verdict():
    text = Gain.of(REGRET, REGRET / 2, failures=Failures(3, 5)).verdict
    assert text.endswith(
        "3 of 200 validation decisions failed with squared error, 5 with this model; each counts "
        "as the worst decision of squared error."
    )
    kept = Gain.of(REGRET, REGRET, failures=Failures(3, 3, left_out=2)).verdict
    assert kept.endswith(
        "3 of 200 validation decisions failed with squared error; each counts as the worst "
        "decision of squared error. Instances left out because the solver failed on them with "
        "every model: 2."
    )


def test_five_instances_are_enough_for_a_verdict():
    gain = Gain.of(np.full(5, 2.0) + np.arange(5) / 100, np.ones(5))
    assert gain.verdict.startswith("Use this model")


def test_the_inexactness_is_that_of_the_model_with_the_more_negative_regrets():
    exact, inexact = np.array([9.0, 9.0, 9.0, 9.0, 0.0]), np.array([-1.0, -1.0, 20.0, 20.0, 0.0])
    for pair in ((exact, inexact), (inexact, exact)):
        gain = Gain.of(*pair)
        assert (gain.inexactness, gain.n_inexact) == (0.4, 2)  # a regret of 0 is exact


def test_a_small_negative_regret_is_inexactness_however_many_instances_there_are():
    regret = np.ones(1000)
    regret[0] = -0.01  # the mean of the negative parts is ten times the rounding of a solver
    gain = Gain.of(regret, np.ones(1000))
    assert gain.n_inexact == 1
    assert gain.inexactness == pytest.approx(1e-5)


def test_a_regret_of_zero_before_allows_no_percentage():
    assert Gain(0.0, 0.0, -1.0, 1.0, 9).share is None
    assert Gain(0.5, 0.25, 0.1, 0.4, 9).share == 0.5


def test_a_gain_whose_interval_begins_at_zero_may_be_chance():
    assert Gain(2.0, 1.0, 0.0, 2.0, 50).verdict.startswith("Perhaps use this model")


def test_a_gain_as_large_as_the_inexactness_is_explained_by_it():
    gain = Gain(2.0, 1.0, 0.5, 1.5, 50, n_inexact=3, inexactness=1.0)
    assert "a difference that the solver's inexactness explains" in gain.verdict


def test_a_gain_has_no_inexactness_unless_it_is_given():
    assert "inexactness" not in Gain(2.0, 1.5, 0.2, 0.8, 50).verdict


@pytest.mark.parametrize("failures", [Failures(two_stage=2), Failures(chosen=2)])
def test_failures_of_one_model_alone_are_named(failures):
    verdict = Gain(2.0, 1.0, 0.5, 1.5, 50, failures=failures).verdict
    assert f"{failures.two_stage} of 50 validation decisions failed with squared error" in verdict


def test_the_standard_error_of_two_values_is_known_and_of_one_is_not():
    assert standard_error(np.array([0.0, 2.0])) == 1.0
    assert standard_error(np.array([1.0])) == np.inf


def test_positive_regrets_do_not_hide_which_model_is_less_exact():
    more, less = np.array([-1.0, 1.0, 1.0, 1.0, 1.0]), np.array([-0.5, 0.0, 0.0, 0.0, 0.0])
    assert Gain.of(more, less).inexactness == Gain.of(less, more).inexactness == 0.2
