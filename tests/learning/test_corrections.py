"""Shifts of predictions that a learned loss asks for."""

import numpy as np
import pytest

from lodl.learning._corrections import best_shift, can_correct, shifted
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


def pinball(y, level, family=DirectedWeightedMAE()):  # noqa: B008 - it is frozen
    size = (len(y), y[0].size)
    phi = {"w_plus": np.full(size, 1 - level), "w_minus": np.full(size, level)}
    if isinstance(family, DirectedWeightedMAE):
        phi["width"] = np.full(size, 0.02)
    return LearnedLoss(family, y, phi, FitErrors.empty(len(y)), {})


def folds_of(n, n_folds):
    parts = np.arange(n) % n_folds == np.arange(n_folds)[:, None]
    return Folds(~parts, parts, n)


@pytest.fixture
def residuals():
    return np.random.default_rng(0).exponential(size=(N, D)) * [1.0, 10.0, 0.1]


@pytest.mark.parametrize("level", [0.2, 0.5, 0.9])
def test_the_shift_of_a_pinball_loss_is_a_quantile_of_the_residuals(level, residuals):
    loss = pinball(residuals / [1.0, 10.0, 0.1], level)
    shift = best_shift(loss, np.zeros((N, D)), np.arange(N))
    expected = np.quantile(residuals / [1.0, 10.0, 0.1], level, axis=0)
    np.testing.assert_allclose(shift, expected, atol=0.05)


def test_the_shift_of_equal_squares_is_the_mean_residual(residuals):
    loss = pinball(residuals, 0.5, DirectedWeightedMSE())
    shift = best_shift(loss, np.zeros((N, D)), np.arange(0, N, 2))
    np.testing.assert_allclose(shift, residuals[::2].mean(axis=0), rtol=1e-4)


def test_labels_keep_their_shape(residuals):
    loss = pinball(residuals.reshape(N, 3, 1), 0.9)
    assert best_shift(loss, np.zeros((N, 3, 1)), np.arange(N)).shape == (3, 1)


def test_a_fold_is_shifted_by_what_the_other_folds_ask_for(residuals):
    y, folds = residuals / [1.0, 10.0, 0.1], folds_of(N, 5)
    loss, zero = pinball(y, 0.9), np.zeros((N, D))
    moved = shifted(Contender("plain", 0, zero), loss, folds)
    assert moved.name == "plain, shifted"
    np.testing.assert_allclose(moved.shift, best_shift(loss, zero, np.arange(N)))
    for part in folds.parts:
        expected = best_shift(loss, zero, np.flatnonzero(~part))
        np.testing.assert_allclose(moved.y_hat[part], np.tile(expected, (part.sum(), 1)))
    spoiled = LearnedLoss(
        loss.family, np.where(folds.parts[0][:, None], 99.0, y), loss.phi, loss.errors, {}
    )
    again = shifted(Contender("plain", 0, zero), spoiled, folds)
    np.testing.assert_allclose(again.y_hat[folds.parts[0]], moved.y_hat[folds.parts[0]])


def test_a_single_fold_is_divided(residuals):
    part = np.arange(N)[np.newaxis] >= N // 2
    moved = shifted(
        Contender("plain", 0, np.zeros((N, D))), pinball(residuals, 0.9), Folds(~part, part, N)
    )
    assert len(np.unique(moved.y_hat[N // 2 :, 0])) == 5
    assert len(np.unique(moved.y_hat[: N // 2, 0])) == 1  # these validate nothing


def test_shifts_add_up(residuals):
    loss, folds = pinball(residuals, 0.9), folds_of(N, 5)
    once = shifted(Contender("plain", 0, np.zeros((N, D))), loss, folds)
    twice = shifted(once, loss, folds)
    np.testing.assert_allclose(twice.shift, once.shift, rtol=0.1)


def test_a_few_instances_are_not_shifted(residuals):
    loss = pinball(residuals[:24], 0.9)
    assert shifted(Contender("plain", 0, np.zeros((24, D))), loss, folds_of(24, 5)) is None


def test_only_convex_losses_fitted_to_regrets_can_correct():
    y = np.zeros((2, 1))
    families = (DirectedWeightedMAE(), DirectedWeightedMSE(), DecisionHinges(max_decisions=1))
    losses = [
        LearnedLoss(
            family,
            y,
            {name: np.ones((2, *s)) for name, s in family.parameter_shapes(1).items()},
            FitErrors.empty(2),
            {},
        )
        for family in (*families, DirectedQuadratic())
    ]
    assert [can_correct(loss) for loss in losses] == [True, True, False, False]
