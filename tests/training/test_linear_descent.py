"""Linear models trained on many instances, batch by batch."""

import numpy as np
import pytest

from lodl.losses import FitErrors, LearnedLoss, WeightedMSE
from lodl.training import _linear_descent
from lodl.training._linear_descent import Descent, _divided
from lodl.training._scaling import Scaling
from lodl.training.linear import LinearLearner


def weighted_loss(n, dim=2, seed=0):
    """Returns features and a loss that weighs coordinates, with what is least in closed form."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    y = x @ rng.normal(size=(3, dim)) + 0.5 * rng.normal(size=(n, dim))
    w = rng.uniform(0.1, 3.0, size=(n, dim))
    return x, LearnedLoss(WeightedMSE(), y, {"w": w}, FitErrors.empty(n), {})


def folds(n, n_folds):
    is_trained = np.ones((n, n_folds), dtype=bool)
    for i in range(n):
        is_trained[i, i % n_folds] = False
    return is_trained


@pytest.mark.parametrize("n", [10, 256, 257, 1000])
def test_every_instance_is_in_one_batch_and_folds_lie_together(n):
    is_trained = folds(n, 5)
    batches = _divided(is_trained)
    assert sorted(np.concatenate(batches)) == list(range(n))
    assert max(map(len, batches)) <= 256
    for batch in batches:
        held_out_by = (~is_trained[batch]).argmax(axis=1)
        assert (np.diff(held_out_by) >= 0).all()
        assert len(set(held_out_by)) == 5


def test_held_out_losses_are_those_of_the_instances_a_model_does_not_see():
    n = 600
    x, loss = weighted_loss(n)
    rows = np.hstack([x, np.ones((n, 1))])
    labels = Scaling.of_labels(loss.y, None)
    is_trained = folds(n, 3)
    descent = Descent(rows, loss, is_trained, labels, 0.01)
    w = np.random.default_rng(1).normal(size=(3, 4, 2))
    got = descent._held_out(w, np.arange(3))
    for model in range(3):
        y_hat = labels.centre + labels.spread * (rows @ w[model])
        expected = loss.value(y_hat)[~is_trained[:, model]].mean()
        assert got[model] == pytest.approx(expected)


def test_batches_reach_the_optimum_that_all_instances_at_once_reach(monkeypatch):
    x, loss = weighted_loss(1000)
    learner = LinearLearner()
    in_batches = learner.train(x, loss, n_steps=600)[0].predict(x)
    monkeypatch.setattr(_linear_descent, "_BATCH_SIZE", 10_000)
    at_once = learner.train(x, loss, n_steps=600)[0].predict(x)
    least, found = loss.value(at_once).mean(), loss.value(in_batches).mean()
    assert found <= 1.001 * least


def test_batches_do_not_depend_on_chance():
    x, loss = weighted_loss(700)
    first, second = (LinearLearner().train(x, loss, n_steps=50)[0].predict(x) for _ in range(2))
    np.testing.assert_array_equal(first, second)
