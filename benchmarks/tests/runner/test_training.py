import copy
from typing import Any

import numpy as np
import pytest
import torch

from lodl.errors import InvalidInputError
from lodl.training.torch import TrainingSettings, mlp
from lodl_benchmarks.runner import predict, squared_error, train


@pytest.fixture
def regression():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 5, 3))
    y = np.tanh(x @ rng.standard_normal((3, 2))) + 0.1 * rng.standard_normal((60, 5, 2))
    return x[:40], y[:40], x[40:], y[40:]


def train_mse(models, data, criterion=None, validation=None, **settings):
    x, y, x_validation, y_validation = data
    return train(
        models,
        x,
        criterion or squared_error(y),
        x_validation,
        validation or squared_error(y_validation),
        TrainingSettings(**{"learning_rate": 1e-2} | settings),
    )


def models(n, hidden=(16,)):
    return [mlp(3, (5, 2), hidden=hidden, n_items=5, seed=seed) for seed in range(n)]


def test_training_lowers_the_validation_score(regression):
    before = train_mse(models(2), regression, n_steps=0)
    after = train_mse(models(2), regression, n_steps=300)
    assert (after.scores < 0.3 * before.scores).all()


@pytest.mark.parametrize("batch_size", [None, 16])
def test_together_is_the_same_as_one_by_one(regression, batch_size):
    settings = {"n_steps": 120, "patience": 10, "batch_size": batch_size, "learning_rate": 0.05}
    together = train_mse(models(4), regression, **settings)
    for i, model in enumerate(models(4)):
        alone = train_mse([model], regression, **settings)
        assert alone.best_steps[0] == together.best_steps[i]
        assert alone.scores[0] == pytest.approx(together.scores[i], rel=1e-4)
        y_hat = predict([together.models[i]], regression[2])
        assert predict(alone.models, regression[2]) == pytest.approx(y_hat, abs=1e-4)


def test_it_is_the_same_as_a_plain_loop_with_adam(regression):
    x, y = (torch.as_tensor(a, dtype=torch.float32) for a in regression[:2])
    model = models(1)[0]
    by_hand = copy.deepcopy(model)
    optimiser = torch.optim.Adam(by_hand.parameters(), lr=1e-2)
    for _ in range(20):
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(by_hand(x), y).backward()
        optimiser.step()
    trained = train_mse([model], regression, n_steps=20, validate_every=20)
    assert trained.best_steps == [20]
    with torch.no_grad():
        assert predict(trained.models, x)[0] == pytest.approx(by_hand(x).numpy(), abs=1e-5)


def test_the_best_state_is_restored(regression):
    # A score that gets worse from step 10 on: what was best then must come back.
    seen: list[Any] = []

    def score(y_hat, index):
        seen.append(y_hat.clone())
        return torch.full((1, len(index)), abs(len(seen) - 3.0))

    trained = train_mse(
        models(1), regression, validation=score, n_steps=1000, validate_every=5, patience=20
    )
    assert trained.best_steps == [10]
    assert trained.last_steps == [35]
    assert np.array_equal(predict(trained.models, regression[2]), seen[2].double().numpy())


def test_a_model_that_diverges_leaves_the_others_alone(regression):
    def nan_for_one(y_hat, index):
        return squared_error(regression[1])(y_hat, index) * torch.tensor([[1.0], [torch.nan]])

    healthy = train_mse(models(2), regression, n_steps=30)
    trained = train_mse(models(2), regression, nan_for_one, n_steps=30)
    assert trained.scores[0] == healthy.scores[0]
    assert trained.best_steps.tolist() == [healthy.best_steps[0], 0]
    assert healthy.best_steps[0] > 0
    assert np.isfinite(predict(trained.models, regression[2])).all()


def test_each_model_tells_when_it_stopped(regression):
    looks = []

    def score(y_hat, index):
        looks.append(len(y_hat))
        better = torch.tensor([1.0, -len(looks)])  # the first is never better again
        return better[2 - len(y_hat) :, None].expand(-1, len(index))

    trained = train_mse(
        models(2), regression, validation=score, n_steps=33, validate_every=5, patience=10
    )
    assert trained.best_steps.tolist() == [0, 33]
    assert trained.last_steps.tolist() == [15, 33]
    assert looks == [2, 2, 2, 2, 1, 1, 1, 1]  # at 0, 5, 10 and 15; at 20, 25, 30 and 33


def test_frozen_parameters_stay_as_they_are(regression):
    def frozen(n):
        made = models(n)
        for model in made:
            model[0].requires_grad_(False)
        return made

    given = frozen(4)
    settings = {"n_steps": 120, "patience": 10, "learning_rate": 0.05}
    trained = train_mse(given, regression, **settings)
    assert len(set(trained.last_steps.tolist())) > 1  # some stop while others go on
    for i, (before, after) in enumerate(zip(given, trained.models, strict=True)):
        assert torch.equal(before[0].weight, after[0].weight)
        assert not after[0].weight.requires_grad
        assert not torch.equal(before[2].weight, after[2].weight)
        alone = train_mse(frozen(4)[i : i + 1], regression, **settings)
        assert alone.scores[0] == pytest.approx(trained.scores[i], rel=1e-4)


def test_models_may_be_of_double_precision(regression):
    given = [model.double() for model in models(2)]
    trained = train_mse(given, regression, n_steps=20)
    assert {p.dtype for model in trained.models for p in model.parameters()} == {torch.float64}
    single = train_mse(models(2), regression, n_steps=20)
    assert trained.scores == pytest.approx(single.scores, rel=1e-4)


def test_the_given_models_are_left_as_they_are(regression):
    given = models(2)
    before = copy.deepcopy(given[0].state_dict())
    train_mse(given, regression, n_steps=5)
    assert all(torch.equal(before[name], value) for name, value in given[0].state_dict().items())


def test_training_is_deterministic(regression):
    once, again = (train_mse(models(2), regression, n_steps=30, batch_size=8) for _ in range(2))
    assert np.array_equal(once.scores, again.scores)
    assert np.array_equal(predict(once.models, regression[2]), predict(again.models, regression[2]))


def test_labels_without_a_label_axis_are_an_error():
    with pytest.raises(InvalidInputError, match=r"`y` must have .*use `y.reshape\(-1, 1\)`"):
        squared_error(np.zeros(3))


def test_training_and_validation_are_each_in_their_mode(regression):
    class Modes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = models(1)[0]

        def forward(self, x):
            seen.append(self.training)
            return self.model(x)

    seen: list[Any] = []
    train_mse([Modes()], regression, n_steps=2, validate_every=1)
    assert seen == [False, True, False, True, False]


def test_a_first_score_that_is_not_finite_is_an_error(regression):
    def nan(y_hat, index):
        return torch.full((2, len(index)), torch.nan)

    with pytest.raises(InvalidInputError, match=r"must be finite before .*, got \[nan nan\]"):
        train_mse(models(2), regression, validation=nan)
