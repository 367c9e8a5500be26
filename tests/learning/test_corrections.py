"""Predictions shifted by a quantile of their residuals."""

import numpy as np
import pytest

import lodl
from lodl.learning._corrections import (
    shift_of,
    shifted,
    shifted_by_loss,
)
from lodl.learning._folds import Folds
from lodl.learning._search import Contender
from lodl.losses import (
    DecisionHinges,
    DirectedQuadratic,
    DirectedWeightedMAE,
    DirectedWeightedMSE,
    FitErrors,
    LearnedLoss,
)

N, D = 400, 3


def folds(n: int, n_parts: int = 5) -> Folds:
    parts = np.arange(n) % n_parts == np.arange(n_parts)[:, np.newaxis]
    return Folds(~parts, parts, n)


@pytest.mark.parametrize("n_parts", [5, 1])
def test_an_instance_is_judged_by_a_shift_that_its_own_residual_did_not_set(n_parts):
    y = np.zeros((50, 1))
    parts = folds(50)
    if n_parts == 1:
        part = (np.arange(50) >= 30)[np.newaxis]
        parts = Folds(~part, part, 50)
    y_hat = np.random.default_rng(0).normal(size=(50, 1))
    before = shifted(Contender("m", 0, y_hat), 0.9, y, parts).y_hat
    row = parts.validation[3]
    y_hat[row] += 100.0
    after = shifted(Contender("m", 0, y_hat), 0.9, y, parts).y_hat
    assert after[row] - before[row] == pytest.approx(100.0)


def test_without_a_loss_that_is_fitted_to_regrets_no_shift_is_tried():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)), rng.gamma(2.0, size=(40, 2))
    shop = lodl.problem(
        lambda y_hat: y_hat,
        lambda z, y: float(np.maximum(z - y, 4 * (y - z)).sum()),
        sense="min",
    )
    model = lodl.DecisionFocusedRegressor(shop, families=[DecisionHinges()], n_rounds=0)
    names = [trial.name for trial in model.fit(x, y).result_.trials]
    assert not any("shifted" in name for name in names)
    model = lodl.DecisionFocusedRegressor(shop, families=[DirectedWeightedMAE()], n_rounds=0)
    names = [trial.name for trial in model.fit(x, y).result_.trials]
    assert any("shifted" in name for name in names)


@pytest.mark.slow
def test_one_model_of_items_that_differ_is_shifted_to_the_mean_of_each():
    rng = np.random.default_rng(0)
    values = np.array([1.0, 3.0, 2.0, 4.0])
    x = rng.normal(size=(120, 4, 2))  # features do not tell the items apart
    y = values + x @ np.array([1.5, 0.8]) + 0.3 * rng.normal(size=(120, 4))
    best_two = lodl.problem(
        lambda y_hat: np.isin(np.arange(4), np.argsort(y_hat)[-2:]) * 1.0,
        lambda z, y: float(z @ y),
        sense="max",
    )
    model = lodl.DecisionFocusedRegressor(best_two).fit(x[:80], y[:80])
    result = model.result_
    assert "shifted to each item's mean" in result.selected_name
    np.testing.assert_allclose(result.baseline_shift, values - values.mean(), atol=0.3)
    rows = model.evaluate(x[80:], y[80:]).means
    assert rows["this model"] < 0.5 * rows["plain model"]


def pinball_loss(y, level, family=DirectedWeightedMAE()):  # noqa: B008 - it is frozen
    size = (len(y), y[0].size)
    phi = {"w_plus": np.full(size, 1 - level), "w_minus": np.full(size, level)}
    if isinstance(family, DirectedWeightedMAE):
        phi["width"] = np.full(size, 0.2)
    return LearnedLoss(family, y, phi, FitErrors.empty(len(y)), {})


@pytest.fixture
def residuals():
    return np.random.default_rng(0).exponential(size=(N, D)) * [1.0, 10.0, 0.1]


@pytest.mark.parametrize("level", [0.2, 0.5, 0.9])
def test_the_shift_of_a_pinball_loss_is_a_quantile_of_the_residuals(level, residuals):
    loss = pinball_loss(residuals / [1.0, 10.0, 0.1], level)
    shift = shift_of(loss, np.zeros((N, D)), np.arange(N))
    expected = np.quantile(residuals / [1.0, 10.0, 0.1], level, axis=0)
    np.testing.assert_allclose(shift, expected, atol=0.05)


def test_the_shift_of_equal_squares_is_the_mean_residual(residuals):
    loss = pinball_loss(residuals, 0.5, DirectedWeightedMSE())
    shift = shift_of(loss, np.zeros((N, D)), np.arange(0, N, 2))
    np.testing.assert_allclose(shift, residuals[::2].mean(axis=0), rtol=1e-4)


def test_labels_keep_their_shape(residuals):
    loss = pinball_loss(residuals.reshape(N, 3, 1), 0.9)
    assert shift_of(loss, np.zeros((N, 3, 1)), np.arange(N)).shape == (3, 1)


LEVELS_OF_EACH = np.array([0.9, 0.4, 0.2])


def test_one_level_for_all_numbers_is_enough_unless_their_own_are_clearly_better(residuals):
    model = Contender("plain", 0, np.zeros((N, D)))
    moved = shifted_by_loss(model, pinball_loss(residuals, 0.9), folds(N))
    assert moved.name == "plain, shifted to the 0.9 quantile of its residuals"
    np.testing.assert_allclose(moved.shift, np.quantile(residuals, 0.9, axis=0))
    moved = shifted_by_loss(model, pinball_loss(residuals, LEVELS_OF_EACH), folds(N))
    assert moved.name == "plain, shifted by the learned loss"


def test_a_fold_is_shifted_by_what_the_other_folds_ask_for(residuals):
    y, five = residuals / [1.0, 10.0, 0.1], folds(N)
    loss, zero = pinball_loss(y, LEVELS_OF_EACH), np.zeros((N, D))
    moved = shifted_by_loss(Contender("plain", 0, zero), loss, five)
    assert moved.name == "plain, shifted by the learned loss"
    np.testing.assert_allclose(moved.shift, shift_of(loss, zero, np.arange(N)))
    for part in five.parts:
        expected = shift_of(loss, zero, np.flatnonzero(~part))
        np.testing.assert_allclose(moved.y_hat[part], np.tile(expected, (part.sum(), 1)))
    spoiled = LearnedLoss(
        loss.family, np.where(five.parts[0][:, None], 1.1 * y, y), loss.phi, loss.errors, {}
    )
    again = shifted_by_loss(Contender("plain", 0, zero), spoiled, five)
    np.testing.assert_allclose(again.y_hat[five.parts[0]], moved.y_hat[five.parts[0]])


def test_a_single_fold_is_divided(residuals):
    part = np.arange(N)[np.newaxis] >= N // 2
    moved = shifted_by_loss(
        Contender("plain", 0, np.zeros((N, D))),
        pinball_loss(residuals, LEVELS_OF_EACH),
        Folds(~part, part, N),
    )
    assert len(np.unique(moved.y_hat[N // 2 :, 0])) == 5
    assert len(np.unique(moved.y_hat[: N // 2, 0])) == 1  # these validate nothing


def test_a_few_instances_are_not_shifted(residuals):
    loss = pinball_loss(residuals[:19], 0.9)
    assert shifted_by_loss(Contender("plain", 0, np.zeros((19, D))), loss, folds(19)) is None


def test_only_convex_losses_fitted_to_regrets_can_be_rounded_and_correct():
    families = DirectedWeightedMAE(), DirectedWeightedMSE(), DecisionHinges(), DirectedQuadratic()
    assert [family.can_be_rounded for family in families] == [True, True, False, False]
