from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lodl.errors import InvalidInputError
from lodl.losses import squared_error_loss
from lodl.training.torch import TorchLearner, TrainingSettings, mlp

QUICK = TrainingSettings(learning_rate=0.05, n_steps=60, patience=5, validate_every=1)
MASKS = np.arange(40) % 4 != np.arange(4)[:, np.newaxis]


@pytest.fixture
def regression():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 3))
    return x, np.tanh(x @ rng.standard_normal((3, 2))) + 0.5 * rng.standard_normal((40, 2))


def network(*layers):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 16), nn.ReLU(), *layers, nn.Linear(16, 2))


class Transfers(TorchDispatchMode):
    """Counts operations on arrays of two devices: one of them waits for the other."""

    n = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        leaves = tree_leaves((args, kwargs, result))
        devices = {leaf.device for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.ndim}
        self.n += len(devices) > 1
        return result


@pytest.mark.parametrize(("batch_size", "n_passes"), [(None, 0), (10, 5)])
def test_another_device_gets_one_array_a_pass(regression, batch_size, n_passes):
    x, y = regression
    settings = TrainingSettings(batch_size=batch_size)
    learner, counts = TorchLearner(network().to("meta"), settings=settings), []
    prepared = learner.prepare(x, y)
    for n_steps in (1, 21):
        with Transfers() as transfers:
            learner.train(x, squared_error_loss(y), prepared=prepared, n_steps=n_steps)
        counts.append(transfers.n)
    assert counts[1] - counts[0] == n_passes


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [None, 16])
def test_folds_at_once_are_the_same_as_one_by_one(regression, batch_size):
    x, y = regression
    settings = TrainingSettings(0.05, n_steps=60, patience=10, batch_size=batch_size)
    learner, loss = TorchLearner(network().double(), settings=settings), squared_error_loss(y)
    together = learner.train(x, loss, MASKS)
    assert len({model.n_steps for model in together}) > 1  # some stop while others go on
    for model, mask in zip(together, MASKS, strict=True):
        (alone,) = learner.train(x, loss, mask[np.newaxis])
        assert alone.n_steps == model.n_steps
        np.testing.assert_allclose(alone.predict(x), model.predict(x), rtol=1e-8)


@pytest.mark.parametrize("layers", [(), (nn.Dropout(0.1),)], ids=["at once", "one by one"])
def test_frozen_parameters_stay_as_they_are(regression, layers):
    x, y = regression
    module = network(*layers)
    module[0].requires_grad_(False)
    learner = TorchLearner(module, n_initialisations=1, settings=QUICK)
    for model in learner.train(x, squared_error_loss(y), MASKS):
        trained: Any = model.modules[0]
        assert torch.equal(trained[0].weight, module[0].weight)
        assert not trained[0].weight.requires_grad
        assert not torch.equal(trained[-1].weight, module[-1].weight)


def test_the_best_state_is_restored(regression):
    x, y = regression
    loss, learner = squared_error_loss(y), TorchLearner(network(), 1, QUICK)
    for mask, model in zip(MASKS, learner.train(x, loss, MASKS), strict=True):
        best = loss.value(model.predict(x))[~mask].mean()
        for n_steps in (model.n_steps - 1, model.n_steps, model.n_steps + 1):
            (other,) = learner.train(x, loss, mask[np.newaxis], n_steps=n_steps)
            assert loss.value(other.predict(x))[~mask].mean() >= best * (1 - 1e-5)


def test_a_module_without_a_parameter_to_train_is_an_error():
    with pytest.raises(InvalidInputError, match="`module` must have a parameter to train"):
        TorchLearner(network().requires_grad_(False))


def test_a_module_that_predicts_nothing_finite_is_an_error(regression):
    x, y = regression
    module: Any = mlp(3, (2,))
    module[0].weight.data[:] = torch.nan
    with pytest.raises(InvalidInputError, match=r"must be finite before .*, got \[nan"):
        TorchLearner(module, n_initialisations=1).train(x, squared_error_loss(y), MASKS)


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
