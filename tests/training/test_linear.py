"""Linear models trained on many instances, batch by batch."""

import numpy as np
import pytest

from lodl import DecisionHinges, DecisionRanking
from lodl.domains import shortest_path
from lodl.losses import FitErrors, LearnedLoss, WeightedMSE, fit_shared
from lodl.oracle import Oracle
from lodl.training import linear
from lodl.training.linear import Descent, LinearLearner, Standardised, _divided


def weighted_loss(n, dim=2, seed=0):
    """Returns features and a loss that weighs coordinates, with what is least in closed form."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    y = x @ rng.normal(size=(3, dim)) + 0.5 * rng.normal(size=(n, dim))
    w = rng.uniform(0.1, 3.0, size=(n, dim))
    return x, LearnedLoss(WeightedMSE(), y, {"w": w}, FitErrors.empty(n), {})


def folds(n, n_folds):
    return np.arange(n) % n_folds != np.arange(n_folds)[:, np.newaxis]


@pytest.mark.parametrize("n", [10, 256, 257, 1000])
def test_every_instance_is_in_one_batch_and_folds_lie_together(n):
    masks = folds(n, 5)
    batches = _divided(masks)
    assert sorted(np.concatenate(batches)) == list(range(n))
    assert max(map(len, batches)) <= 256
    for batch in batches:
        held_out_by = (~masks[:, batch]).argmax(axis=0)
        assert (np.diff(held_out_by) >= 0).all()
        assert len(set(held_out_by)) == 5


@pytest.mark.parametrize("overlap", [False, True])
def test_validation_losses_are_of_the_instances_outside_a_mask(overlap):
    n, rng = 600, np.random.default_rng(1)
    x, loss = weighted_loss(n)
    masks = rng.uniform(size=(3, n)) < 0.5 if overlap else folds(n, 3)
    data = [Standardised(k + x, loss.y, mask) for k, mask in enumerate(masks)]
    descent = Descent(data, loss, masks)
    w = rng.normal(size=(3, 4, 2))
    got = descent.scores(w, descent.batches, np.arange(3))
    for k, (part, mask) in enumerate(zip(data, masks, strict=True)):
        slopes, constant = part.coefficients(w[k])
        y_hat = constant + (k + x - part.features.centre) @ slopes
        assert got[k] == pytest.approx(loss.value(y_hat)[~mask].mean(), rel=1e-5)


@pytest.mark.parametrize("n_out", [30, 1000])
def test_enough_instances_stop_a_model_or_all_if_they_are_few(monkeypatch, n_out):
    monkeypatch.setattr(linear, "_ENOUGH", 200)
    n, sizes = 5000, []
    x, loss = weighted_loss(n)
    masks = np.arange(n)[np.newaxis] >= n_out
    descent = Descent([Standardised(x, loss.y, masks[0])], loss, masks)

    def value(batch, family, v):
        sizes.append(len(batch.offset))
        return v

    monkeypatch.setattr(linear._Batch, "value", value)
    descent.scores(np.zeros((1, 4, 2)), descent.batches, np.arange(1))
    assert min(200, n_out) <= sum(sizes) <= min(300, n_out)


def test_batches_reach_the_optimum_that_all_instances_at_once_reach(monkeypatch):
    x, loss = weighted_loss(1000)
    learner = LinearLearner()
    in_batches = learner.train(x, loss, n_steps=600)[0].predict(x)
    monkeypatch.setattr(linear, "_BATCH_SIZE", 10_000)
    at_once = learner.train(x, loss, n_steps=600)[0].predict(x)
    least, found = loss.value(at_once).mean(), loss.value(in_batches).mean()
    assert found <= 1.001 * least


def test_many_batches_get_near_the_minimum_by_smaller_steps_at_the_end():
    domain = shortest_path(1, degree=2, noise=0.0, sizes=(3500, 1, 1))
    data, masks, learner = domain.splits.train, folds(3500, 5)[:1], LinearLearner()
    samples = Oracle(domain.problem, progress=False).sample(data.y, n_samples=0, slopes=True)
    loss = fit_shared(samples, DecisionHinges(), holdout=0.0)
    stopped = learner.train(data.x, loss, masks)[0]
    finals = (learner.train(data.x, loss, n_steps=n)[0] for n in (stopped.n_steps, 1000))
    before, after, least = (loss.value(m.predict(data.x)).mean() for m in (stopped, *finals))
    assert after < 0.93 * before
    assert least < 1.01 * after


def test_batches_do_not_depend_on_chance():
    x, loss = weighted_loss(700)
    first, second = (LinearLearner().train(x, loss, n_steps=50)[0].predict(x) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_many_features_get_the_ridge_penalty_with_the_least_left_out_error():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 60))
    y = x[:, :1] + rng.normal(size=(80, 2))
    (solved,) = LinearLearner().prepare(x, y)
    targets = (y - y.mean(axis=0)) / y.std(axis=0)
    rows = np.column_stack([(x - x.mean(axis=0)) / x.std(axis=0), np.ones(80)])

    def left_out(ridge):
        error = 0.0
        for i in range(80):
            others = np.arange(80) != i
            gram = rows[others].T @ rows[others] + ridge * 80 * np.diag(np.arange(61) < 60)
            weights = np.linalg.solve(gram, rows[others].T @ targets[others])
            error += np.square(rows[i] @ weights - targets[i]).sum()
        return error

    ridges = (1e-2, 3e-2, 0.1, 0.3, 1.0)
    assert solved.ridge == min(ridges, key=left_out)
    assert left_out(solved.ridge) < 0.7 * left_out(1e-6)


def test_few_features_need_no_ridge_penalty():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = x @ rng.normal(size=(3, 2)) + rng.normal(size=(200, 2))
    assert [part.ridge for part in LinearLearner().prepare(x, y)] == [1e-6]


@pytest.mark.parametrize("batch_size", [20, 50])
@pytest.mark.parametrize("n_all_taken", [0, 100])
@pytest.mark.parametrize("family", [DecisionHinges(), DecisionRanking()], ids=str)
def test_shared_decisions_train_the_models_that_their_arrays_train(
    monkeypatch, family, n_all_taken, batch_size
):
    monkeypatch.setattr("lodl.losses._fit_shared._N_ALL_TAKEN", n_all_taken)
    monkeypatch.setattr("lodl.losses._shared_slopes._MAX_NUMBERS", 0)
    monkeypatch.setattr(linear, "_BATCH_SIZE", batch_size)
    monkeypatch.setattr(linear, "_are_own", lambda slope: False)  # steps of the same size
    train = shortest_path(sizes=(50, 1, 1), grid=(3, 3)).splits.train
    problem = shortest_path(sizes=(50, 1, 1), grid=(3, 3)).problem
    samples = Oracle(problem, progress=False).sample(train.y, n_samples=2, slopes=True)
    shared = fit_shared(samples, family, at=0.9 * train.y, holdout=0.0)
    phi = {name: np.asarray(rows) for name, rows in shared.phi.items()}
    arrays = LearnedLoss(shared.family, shared.y, phi, shared.errors, {})
    models = [
        LinearLearner(n_steps=30).train(train.x, loss, folds(50, 3)) for loss in (shared, arrays)
    ]
    for shared_model, model in zip(*models, strict=True):
        assert shared_model.n_steps == model.n_steps
        np.testing.assert_allclose(shared_model.coefficients, model.coefficients, atol=1e-5)


def test_training_uses_one_blas_thread(monkeypatch):
    from threadpoolctl import threadpool_info

    n_threads: list[int] = []

    class Watched(WeightedMSE):
        is_convex = False  # trained by Adam

        def gradient(self, phi, d):
            pools = threadpool_info()
            n_threads.extend(p["num_threads"] for p in pools if p["user_api"] == "blas")
            return super().gradient(phi, d)

    x, loss = weighted_loss(20)
    watched = LearnedLoss(Watched(), loss.y, loss.phi, loss.errors, {})
    LinearLearner(n_steps=2).train(x, watched)
    assert set(n_threads) == {1}


@pytest.mark.parametrize("is_own", [False, True])
def test_outputs_take_the_same_steps_if_instances_have_decisions_of_their_own(monkeypatch, is_own):
    monkeypatch.setattr(linear, "_are_own", lambda slope: is_own)
    rng, spread = np.random.default_rng(0), np.array([1.0, 100.0])
    x, y = rng.normal(size=(60, 3)), spread * rng.normal(size=(60, 2))
    phi = {"regret": np.ones((60, 2)), "slope": rng.normal(size=(60, 2, 2))}  # of one unit
    family = DecisionHinges(min_weight=0.0, max_decisions=2)
    loss = LearnedLoss(family, y, {**phi, "w": np.zeros((60, 2))}, FitErrors.empty(60), {})
    (before,), (after,) = (LinearLearner().train(x, loss, n_steps=n) for n in (0, 1))
    moved = np.abs(after.constant - before.constant)
    expected = np.full(2, np.sqrt(np.mean(y.std(axis=0) ** 2))) if is_own else y.std(axis=0)
    np.testing.assert_allclose(moved, 0.03 * expected, rtol=1e-4)


def test_steps_are_equal_only_if_outputs_have_one_unit():
    rng, spread = np.random.default_rng(0), np.geomspace(0.01, 100, 8)
    slopes = rng.normal(size=(50, 4, 8))
    assert linear._have_one_unit(slopes, spread)
    assert not linear._have_one_unit(slopes / spread, spread)  # as decisions of another unit are
    assert linear._have_one_unit(slopes, spread[:1])  # items
