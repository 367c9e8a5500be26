"""Predictions shifted by a quantile of their residuals."""

import numpy as np
import pytest

from lodl.learning._corrections import LEVELS, best_shift, n_corrections, shifted
from lodl.learning._folds import Folds
from lodl.learning._search import Contender


def folds(n: int, n_parts: int = 5) -> Folds:
    parts = np.arange(n) % n_parts == np.arange(n_parts)[:, np.newaxis]
    return Folds(~parts, parts, n)


def contender(y: np.ndarray, seed: int = 0) -> Contender:
    rng = np.random.default_rng(seed)
    y_hat = y + rng.normal(size=y.shape) * np.array([1.0, 3.0])
    return Contender("squared error", 0, y_hat, regret=pinball(0.9)(y_hat, y))


def pinball(level: float):
    """The cost of a newsvendor whose best decision is the quantile at a level."""

    def cost(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.maximum(level * (y - z), (level - 1) * (y - z)).sum(axis=1)

    return cost


@pytest.mark.parametrize("level", [0.05, 0.3, 0.9, 0.98])
def test_the_shift_is_near_the_quantile_that_costs_least(level):
    y = np.random.default_rng(1).normal(size=(1000, 2)) + 50
    model, cost = contender(y), pinball(level)
    model = Contender("squared error", 0, model.y_hat, regret=cost(model.y_hat, y))
    best = best_shift(model, y, folds(1000), lambda y_hat, rows: cost(y_hat, y[rows]))
    assert best is not None
    found = float(best.name.split(" the ")[1].split()[0])
    assert abs(LEVELS.index(found) - LEVELS.index(level)) <= 1
    new = contender(y, seed=2).y_hat
    assert cost(new + best.shift, y).mean() < cost(new, y).mean()


def test_no_shift_is_made_where_none_helps():
    y = np.random.default_rng(1).normal(size=(200, 2))
    model = Contender("squared error", 0, y, regret=np.zeros(200))
    cost = pinball(0.5)
    assert best_shift(model, y, folds(200), lambda y_hat, rows: cost(y_hat, y[rows])) is None


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


def test_the_calls_are_counted_before_they_are_made():
    calls = []
    y = np.random.default_rng(1).normal(size=(400, 2))
    cost = pinball(0.99)

    def regrets(y_hat, rows):
        calls.append(len(rows))
        return cost(y_hat, y[rows])

    best_shift(contender(y), y, folds(400), regrets)
    assert sum(calls) + 400 <= n_corrections(400) / 2 * 400


def test_failed_calls_do_not_win():
    y = np.random.default_rng(1).normal(size=(100, 2))
    nothing = best_shift(
        contender(y), y, folds(100), lambda y_hat, rows: np.full(len(rows), np.nan)
    )
    assert nothing is None
