"""Labels of simulated trials against the true effects."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from lodl_benchmarks.budget import (
    COSTS,
    SETTINGS,
    Data,
    Setting,
    TLearner,
    doubly_robust,
    drawn_together,
    fit_batches,
    inverse_propensity,
    predict_customers,
)
from lodl_benchmarks.budget._methods import treatments_by_price, treatments_by_ratio

N = 40_000


@pytest.fixture(scope="module")
def trial():
    return SETTINGS["uneven"].draw(1, N, "test")


def make_labels(trial):
    yield inverse_propensity(trial)
    yield doubly_robust(trial, LinearRegression)


def test_labels_are_unbiased_for_everybody_and_for_each_part_of_the_customers(trial):
    for y in make_labels(trial):
        error = y - trial.effects
        for part in (slice(None), trial.x[:, 0] > 1, trial.effects[:, 2] > 3):
            mean, deviation = error[part].mean(axis=0), error[part].std(axis=0)
            assert (np.abs(mean) < 4 * deviation / np.sqrt(len(error[part]))).all()


def test_labels_of_a_wrong_guess_are_unbiased_too(trial):
    error = inverse_propensity(trial, guess=7.0) - trial.effects
    assert (np.abs(error.mean(axis=0)) < 4 * error.std(axis=0) / np.sqrt(N)).all()


def test_a_model_of_responses_makes_labels_less_noisy():
    trial = Setting(is_linear=True, baseline=5.0).draw(1, N, "test")
    plain, robust = (np.std(y - trial.effects, axis=0) for y in make_labels(trial))
    assert (robust < plain / 2).all()


def test_labels_drawn_together_have_less_noise_and_a_way_of_zero_keeps_them(trial):
    y = doubly_robust(trial, LinearRegression)
    noise = [
        np.std(drawn_together(trial.x, y, LinearRegression, way) - trial.effects)
        for way in (0.0, 0.5, 1.0)
    ]
    assert noise == sorted(noise, reverse=True)
    np.testing.assert_array_equal(drawn_together(trial.x, y, LinearRegression, 0.0), y)


def test_the_label_of_a_customer_does_not_draw_itself(trial):
    y = np.zeros((200, 1))
    y[7] = 1.0
    drawn = drawn_together(trial.x[:200], y, LinearRegression)
    without = drawn_together(np.delete(trial.x[:200], 7, 0), np.delete(y, 7, 0), LinearRegression)
    assert not without.any()
    assert (drawn[:, 0] == 0).sum() >= 80  # the fold of customer 7, whose models have not seen it
    assert drawn[7, 0] == 0


def test_a_linear_world_is_learned_by_a_linear_model_of_responses():
    draw = SETTINGS["linear"].draw
    test = draw(1, 2000, "test")
    predicted = TLearner(LinearRegression, draw(1, N, "train")).predict(test.x)
    assert np.abs(predicted - test.effects).max() < 0.3


def test_the_greedy_rule_pays_for_the_best_ratios_and_a_price_is_worth_more(trial):
    effects, costs = trial.effects[:500], np.array([0, *COSTS])
    padded = np.column_stack([np.zeros(500), effects])
    each, worth = np.arange(500), []
    for rule in (treatments_by_ratio, treatments_by_price):
        chosen = rule(effects, 300.0) + 1
        assert 290 < costs[chosen].sum() <= 300
        worth.append(padded[each, chosen].sum())
    assert worth[0] < worth[1]
    assert (treatments_by_ratio(-effects, 300.0) == -1).all()


@pytest.mark.slow
def test_a_model_of_batches_predicts_customers_in_any_number_and_order(trial):
    data = Data(SETTINGS["linear"].draw(1, 4000, "train"), size=50, n_batches=30)
    data.__dict__["drawn"] = data.trial.effects  # labels without noise
    model = fit_batches(data)
    y_hat = predict_customers(model, trial.x[:70])
    assert y_hat.shape == (70, 3)
    np.testing.assert_allclose(predict_customers(model, trial.x[:70][::-1])[::-1], y_hat)
    np.testing.assert_allclose(predict_customers(model, trial.x[3:4]), y_hat[3:4])
