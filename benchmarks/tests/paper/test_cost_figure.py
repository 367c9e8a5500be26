from dataclasses import replace

import numpy as np
import pytest

from lodl_benchmarks.paper import (
    LODL,
    CostFigure,
    CostSettings,
    Measured,
    UnitCosts,
    costs_of_domain,
)

COUNTS = {"N": 10, "B": 4, "K": 100, "T": 50}
UNITS = UnitCosts(surrogate_forward=0.02, surrogate_backward=0.03, learned_loss=0.0005)
ONE, TWO = (1, 30.0, 10.0), (2, 16.0, 5.0)


def costs(*preparation, dfl=12.0):
    training = {"2-stage": 2.0, "DFL": dfl, LODL: 4.0}
    measured = Measured(preparation or (ONE, TWO), training, UNITS)
    return costs_of_domain("small", "Small", measured, COUNTS)


def lodl_by_cores(cost):
    return np.asarray(cost.by_cores.seconds[LODL])


def test_the_curve_by_cores_goes_through_what_was_measured():
    cost = costs()
    measured = [part.seconds[LODL] for part in cost.measured]
    assert measured == [44, 25]
    np.testing.assert_allclose(lodl_by_cores(cost)[:2], measured)


def test_what_two_cores_did_not_save_more_do_not_save_either():
    cost = costs()
    assert cost.serial == 2  # 40 = 2 + 38 on one core, 21 = 2 + 19 on two
    np.testing.assert_allclose(lodl_by_cores(cost), 2 + 38 / np.arange(1, 65) + 4)
    four = costs(ONE, TWO, (4, 10.0, 6.0))
    assert four.serial == 8  # 40 = 8 + 32, 16 = 8 + 32 / 4


def test_training_is_not_divided():
    seconds = costs().by_cores.seconds
    assert set(seconds["2-stage"]) == {2.0}
    assert set(seconds["DFL"]) == {12.0}


@pytest.mark.parametrize(
    ("preparation", "serial"),
    [
        ((ONE,), 0),  # nothing is known of more
        ((ONE, (2, 14.0, 4.0)), 0),  # more than divided
        ((ONE, (2, 30.0, 15.0)), 40),  # slower
    ],
)
def test_what_does_not_divide_is_between_nothing_and_all(preparation, serial):
    cost = costs(*preparation)
    assert cost.serial == serial
    np.testing.assert_allclose(lodl_by_cores(cost), serial + (40 - serial) / np.arange(1, 65) + 4)


def test_time_per_model_falls_towards_that_of_training():
    by_models = costs().by_models
    assert by_models.models == tuple(range(1, 51))
    per_model = np.asarray(by_models.seconds[LODL])
    assert (np.diff(per_model) < 0).all()
    assert per_model[0] == 44
    assert per_model[-1] == pytest.approx(4 + 40 / 50)


def test_at_the_break_even_the_two_cost_the_same():
    cost = costs(dfl=13.6)  # 2 + 38 / 5 + 4
    assert cost.break_even == pytest.approx(5)
    assert lodl_by_cores(cost)[4] == pytest.approx(13.6)
    at_models = costs()
    assert at_models.break_even_models == 5
    assert at_models.by_models.seconds[LODL][4] == 12


def test_there_may_be_no_break_even():
    never = costs(dfl=3.0)
    assert (never.break_even, never.break_even_models) == (None, None)
    by_models_only = costs(dfl=5.0)  # 2 s do not divide, DFL takes 1 s more than training on losses
    assert (by_models_only.break_even, by_models_only.break_even_models) == (None, 40)


def test_unit_costs_are_those_of_one_core():
    units = costs().units
    assert units["T_M"] == 2 / (50 * 4)
    assert units["T_O"] == 30 / (10 * 100)
    assert units["T_fit"] == 10 / (10 * 100)


def test_the_formula_is_the_papers():
    formula = costs().formula
    assert formula["2-stage"] == pytest.approx(2)  # T B T_M
    assert formula["DFL"] == pytest.approx(2 + 50 * 4 * (0.02 + 0.03))
    # K N T_O + N (T K T_LODL) + T B T_M
    assert formula[LODL] == pytest.approx(30 + 10 * (50 * 100 * 0.0005) + 2)


def test_a_fit_is_counted_in_steps_of_the_papers():
    assert costs().fit_steps == pytest.approx(10 / (10 * 100 * 0.0005))


def markdown(**changes):
    settings = CostSettings(100, 50, (1, 2), ("small",), {})
    return CostFigure(settings, {}, (replace(costs(), **changes),)).markdown()


def test_units_say_what_they_were_found_from():
    text = markdown()
    assert "| K | samples of an instance |  | 100 |" in text
    assert "| T_M | model, forward and backward | 2-stage / T B | 10,000.0 µs |" in text
    assert "| T'_O | surrogate of DFL, backward | a pass of B | 30,000.0 µs |" in text


def test_the_papers_cost_stands_beside_what_was_measured():
    text = markdown()
    assert "| domain | trained on | cost | seconds by it | measured, 1 core |" in text
    assert "| Small | 2-stage | T B T_M | 2.0 | 2.0 | 2.0 |" in text
    assert f"| Small | {LODL} | K N T_O + N T K T_LODL + T B T_M | 57.0 | 44.0 | 25.0 |" in text
    assert "a fit took as long as 20 such steps" in text
    assert "2.0 s of sampling and fitting are assumed not to divide" in text


@pytest.mark.parametrize(
    ("cores", "models", "words"),
    [
        (5.0, 7.0, "from 7.0 models on one core, and for a single model from 5.0 cores"),
        (None, 7.0, "from 7.0 models on one core, and for a single model on no number of cores"),
        (None, None, "never"),
        (0.7, 0.8, "on one core, for a single model"),
    ],
)
def test_it_says_where_learned_losses_pay(cores, models, words):
    assert words in markdown(break_even=cores, break_even_models=models)
