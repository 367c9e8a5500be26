import copy
from functools import partial

import numpy as np
import pytest
import torch

from lodl.errors import InvalidInputError
from lodl.evaluation import decision_loss
from lodl.problems import problem
from lodl.training.torch import (
    SquaredError,
    TrainingSettings,
    mlp,
    predict,
    train,
    validation_cost,
    validation_loss,
)


@pytest.fixture
def regression():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 5, 3))
    y = np.tanh(x @ rng.standard_normal((3, 2))) + 0.1 * rng.standard_normal((60, 5, 2))
    return x[:40], y[:40], x[40:], y[40:]


def train_mse(models, data, **settings):
    x, y, x_validation, y_validation = data
    return train(
        models,
        x,
        criterion=SquaredError(y),
        x_validation=x_validation,
        score=validation_loss(SquaredError(y_validation), len(y_validation)),
        settings=TrainingSettings(**{"learning_rate": 1e-2} | settings),
    )


def train_scored(data, score, criterion=None, **settings):
    x, y, x_validation, _ = data
    return train(
        models(2),
        x,
        criterion=criterion or SquaredError(y),
        x_validation=x_validation,
        score=score,
        settings=TrainingSettings(**{"learning_rate": 1e-2} | settings),
    )


def cheapest_score(data):
    cheapest = problem(np.argmin, lambda z, y: y.flat[z], sense="min")
    return validation_cost(partial(decision_loss, cheapest, y=data[3]))


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
    x, y, x_validation, _ = regression
    seen = []

    def score(y_hat):
        seen.append(y_hat.clone())
        return torch.tensor([abs(len(seen) - 3.0)])

    trained = train(
        models(1),
        x,
        criterion=SquaredError(y),
        x_validation=x_validation,
        score=score,
        settings=TrainingSettings(n_steps=1000, validate_every=5, patience=20),
    )
    assert trained.best_steps == [10]
    assert trained.last_steps == [35]
    assert np.array_equal(predict(trained.models, x_validation), seen[2].double().numpy())


def test_models_may_be_stopped_by_decision_quality(regression):
    _, _, x_validation, y_validation = regression
    trained = train_scored(regression, cheapest_score(regression), n_steps=50)
    y_hat = predict(trained.models, x_validation)
    chosen = y_hat.reshape(2, 20, 10).argmin(axis=-1)
    by_hand = np.take_along_axis(y_validation.reshape(20, 10), chosen.T, axis=1).mean(axis=0)
    assert trained.scores == pytest.approx(by_hand)


@pytest.mark.parametrize("by", ["loss", "decision"])
def test_a_model_that_diverges_leaves_the_others_alone(regression, by):
    _, y, _, y_validation = regression
    scores = {
        "loss": validation_loss(SquaredError(y_validation), len(y_validation)),
        "decision": cheapest_score(regression),
    }

    def nan_for_one(y_hat, index):
        return SquaredError(y)(y_hat, index) * torch.tensor([[1.0], [torch.nan]])

    healthy = train_scored(regression, scores[by], n_steps=30)
    trained = train_scored(regression, scores[by], nan_for_one, n_steps=30)
    assert trained.scores[0] == healthy.scores[0]
    assert trained.best_steps.tolist() == [healthy.best_steps[0], 0]
    assert healthy.best_steps[0] > 0
    assert np.isfinite(predict(trained.models, regression[2])).all()


def test_each_model_tells_when_it_stopped(regression):
    looks = []

    def score(y_hat):
        looks.append(len(y_hat))
        better = torch.tensor([1.0, -len(looks)])  # the first is never better again
        return better[2 - len(y_hat) :]

    trained = train_scored(regression, score, n_steps=33, validate_every=5, patience=10)
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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "`models` must hold at least one"),
        (models(1)[0], r"`models` must be a list .* use `\[model\]`"),
        ([models(1)[0].requires_grad_(False)], "`models` must have a parameter to train"),
        (
            [torch.nn.Sequential(torch.nn.BatchNorm1d(5), *models(1))],
            "the buffer '0.running_mean'.*LearnedLossModule",
        ),
        (
            [torch.nn.Sequential(torch.nn.Dropout(0.5), *models(1))],
            "the dropout layer '0'.*LearnedLossModule",
        ),
    ],
)
def test_models_that_cannot_be_trained_are_an_error(regression, given, message):
    with pytest.raises(InvalidInputError, match=message):
        train_mse(given, regression)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (
            mlp(3, (5, 2), n_items=5, hidden=(8,)),
            r"\(16, 3\)` in model 0 and .*\(8, 3\)` in mod.* 1",
        ),
        (mlp(3, (5, 2), n_items=5, hidden=(16,), output="tanh"), "Identity` .* `output: Tanh`"),
        (mlp(3, (5, 2), n_items=5, hidden=()), "relu1"),
        (mlp(3, (5, 2), n_items=5, hidden=(16,)).double(), "float32 .*float64"),
        (mlp(3, (5, 2), n_items=5, hidden=(16,)).requires_grad_(False), r"\(16, 3\) frozen"),
    ],
)
def test_models_of_two_architectures_are_an_error(regression, other, named):
    message = f"`models` must be of one architecture.*{named}"
    with pytest.raises(InvalidInputError, match=message):
        train_mse([*models(1), other], regression)
    with pytest.raises(InvalidInputError, match=message):
        predict([*models(1), other], regression[0])


@pytest.mark.parametrize("reduce", [torch.mean, torch.Tensor.numpy])
def test_losses_of_another_shape_are_an_error(regression, reduce):
    _, y, _, y_validation = regression

    def reduced(y_hat, index):
        return reduce(SquaredError(y)(y_hat, index).detach())

    message = (
        r'`criterion` must return .* \(2, .*, got .*`LearnedLossModule\(loss, reduction="none"'
    )
    with pytest.raises(InvalidInputError, match=message):
        train_scored(regression, cheapest_score(regression), reduced)
    with pytest.raises(InvalidInputError, match=message):
        train_scored(regression, validation_loss(reduced, len(y_validation)))


@pytest.mark.parametrize(
    ("score", "got"),
    [
        (lambda y_hat: y_hat.mean(), r"\(\)"),
        (lambda y_hat: y_hat.flatten(2).mean(-1), r"\(2, 20\)"),
        (lambda y_hat: y_hat.mean().item(), "float"),
    ],
)
def test_scores_of_another_shape_are_an_error(regression, score, got):
    with pytest.raises(InvalidInputError, match=rf"`score` must .* here \(2,\), got {got}"):
        train_scored(regression, score)


def test_more_features_than_labels_are_an_error(regression):
    x, y, x_validation, y_validation = regression
    with pytest.raises(InvalidInputError, match=r"`x` has 40 instances, but the losses are for 30"):
        train_mse(models(1), (x, y[:30], x_validation, y_validation))


@pytest.mark.parametrize("position", [0, 2])
def test_features_that_the_models_do_not_take_are_an_error(regression, position):
    data = list(regression)
    data[position] = data[position][..., :2]
    with pytest.raises(InvalidInputError, match="`x` must have features that the models take, got"):
        train_mse(models(1), data)


def test_labels_without_a_label_axis_are_an_error():
    with pytest.raises(InvalidInputError, match=r"`y` must have .*use `y.reshape\(-1, 1\)`"):
        SquaredError(np.zeros(3))


def test_predictions_are_those_of_evaluation_mode(regression):
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(5), torch.nn.Dropout(0.5), *models(1))
    x = torch.as_tensor(regression[0], dtype=torch.float32)
    model(x)  # in training mode, so that the running statistics are some
    with torch.no_grad():
        expected = copy.deepcopy(model).eval()(x).numpy()
    assert predict([model], x)[0] == pytest.approx(expected, abs=1e-6)
    assert model.training


def test_training_and_validation_are_each_in_their_mode(regression):
    class Modes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = models(1)[0]

        def forward(self, x):
            seen.append(self.training)
            return self.model(x)

    seen = []
    train_mse([Modes()], regression, n_steps=2, validate_every=1)
    assert seen == [False, True, False, True, False]


@pytest.mark.parametrize(("position", "name"), [(0, "x"), (2, "x_validation")])
def test_features_that_are_not_finite_are_an_error(regression, position, name):
    regression[position][3, 1, 2] = np.nan
    with pytest.raises(
        InvalidInputError, match=rf"`{name}` must be finite in .*, got nan at \(3, 1, 2\)"
    ):
        train_mse(models(1), regression)


def test_a_first_score_that_is_not_finite_is_an_error(regression):
    with pytest.raises(InvalidInputError, match=r"`score` must be finite .*, got \[nan, nan\]"):
        train_scored(regression, lambda y_hat: torch.full((2,), torch.nan))


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [
        ("learning_rate", 0.0, "finite and above 0"),
        ("learning_rate", float("nan"), "finite and above 0"),
        ("n_steps", -1, "at least 0"),
        ("validate_every", 0, "at least 1"),
        ("patience", 0, "at least 1"),
        ("batch_size", 0, "at least 1"),
    ],
)
def test_settings_out_of_range_are_an_error(name, value, least):
    with pytest.raises(InvalidInputError, match=f"`{name}` must be .*{least}, got {value}"):
        TrainingSettings(**{name: value})


def test_losses_of_training_and_validation_together_are_refused():
    together = SquaredError(np.ones((30, 2)))
    with pytest.raises(InvalidInputError, match=r"10 instances, but the losses are for 30.*subset"):
        validation_loss(together, 10)


@pytest.mark.parametrize(("rate", "n_told"), [(1e-4, 1), (1e-1, 0)])
def test_models_that_ran_out_of_steps_are_told(regression, rate, n_told, caplog):
    trained = train_mse(models(2), regression, learning_rate=rate, n_steps=300, patience=50)
    assert (trained.best_steps == 300).all() == (n_told == 1)
    assert caplog.text.count("still improving at the last of 300 steps") == n_told
