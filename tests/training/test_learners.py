from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression, PoissonRegressor, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from torch import nn

import lodl
from lodl.errors import InvalidInputError
from lodl.losses import DirectedWeightedMSE, FitErrors, LearnedLoss, squared_error_loss
from lodl.testing import check_learner
from lodl.training import learner_for
from lodl.training.linear import LinearLearner, LinearPredictor
from lodl.training.sklearn import SklearnLearner
from lodl.training.sklearn._linear_form import LinearForm
from lodl.training.torch import LearnedLossModule, TorchLearner, TrainingSettings, mlp
from lodl.training.torch._loop import Stack

pytestmark = pytest.mark.slow

TYPES = ["sklearn.metrics._dist_metrics.EuclideanDistance64", "sklearn.neighbors._kd_tree.KDTree"]
QUICK = TrainingSettings(learning_rate=0.2, n_steps=50)

LEARNERS = {
    "linear": lambda _: LinearLearner(),
    "linear module": lambda n_outputs: TorchLearner(linear(n_outputs), settings=QUICK),
    "module": lambda n_outputs: TorchLearner(
        network(n_outputs), n_initialisations=1, settings=QUICK
    ),
    "dropout": lambda n_outputs: TorchLearner(
        network(n_outputs, nn.Dropout(0.1)), n_initialisations=1, settings=QUICK
    ),
    "batches": lambda n_outputs: TorchLearner(
        linear(n_outputs),
        n_initialisations=1,
        settings=TrainingSettings(learning_rate=0.1, n_steps=50, batch_size=20),
    ),
    "pipeline": lambda _: SklearnLearner(make_pipeline(StandardScaler(), Ridge(0.1))),
    "one output": lambda _: SklearnLearner(BayesianRidge()),
    "corrected": lambda _: SklearnLearner(KNeighborsRegressor(7)),
    "positive": lambda _: SklearnLearner(Ridge(0.1, positive=True)),
}


def linear(n_outputs=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, n_outputs), nn.Flatten()).double()


def network(n_outputs, *layers):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), *layers, nn.Linear(8, n_outputs), nn.Flatten())


def line(n=40, n_labels=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, x @ rng.normal(size=(2, n_labels)) + rng.normal(size=(n, n_labels))


def without(n, *parts):
    """Return masks of n instances that leave out the parts."""
    return np.array([~np.isin(np.arange(n), part) for part in parts])


def directed(y, over, under):
    phi = {"w_plus": np.full(y.shape, over), "w_minus": np.full(y.shape, under)}
    return LearnedLoss(DirectedWeightedMSE(), y, phi, FitErrors.empty(len(y)), {})


@pytest.mark.parametrize("items", [False, True])
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_keeps_the_contract(name, items):
    learner = LEARNERS[name](1 if items else 3)
    trusted = TYPES if name == "corrected" else ()
    module = learner.module if isinstance(learner, TorchLearner) else None
    check_learner(learner, items=items, estimator=module, trusted=trusted)


def test_a_fold_of_linear_models_does_not_depend_on_the_others():
    x, y = line(20)
    loss, (first, *others) = directed(y, 10.0, 0.1), np.split(np.arange(20), 4)
    models = [LinearLearner().train(x, loss, without(20, first, other))[0] for other in others]
    for model in models:
        assert model.n_steps == models[0].n_steps > 0
        # Losses are in single precision, and sums of several models are added in another order.
        np.testing.assert_allclose(model.predict(x), models[0].predict(x), rtol=1e-4, atol=1e-4)


def test_linear_models_average_into_one():
    x, y = line(20)
    parts = np.split(np.arange(20), 4)
    models = LinearLearner().train(x, directed(y, 10.0, 0.1), without(20, *parts))
    (one,) = LinearPredictor.mean(models)
    np.testing.assert_allclose(one.predict(x), np.mean([m.predict(x) for m in models], axis=0))


def test_squared_error_of_a_linear_model_is_least_squares():
    x, y = line()
    rows = np.column_stack([np.ones(40), x])
    expected = rows @ np.linalg.lstsq(rows, y, rcond=None)[0]
    model = LinearLearner().train(x, squared_error_loss(y))[0]
    np.testing.assert_allclose(model.predict(x), expected, atol=1e-5)


def test_a_linear_model_minimises_its_loss():
    x, y = line()
    loss = directed(y, 3.0, 1.0)
    model = LinearLearner(n_steps=2000).train(x, loss)[0]
    y_hat = model.predict(x)
    rows, slope = np.column_stack([np.ones(40), x]), loss.gradient(y_hat)
    assert np.abs(rows.T @ slope).max() < 1e-2 * np.abs(rows.T @ loss.gradient(y_hat + 1)).max()


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e6])
def test_neither_the_unit_of_labels_nor_of_features_matters_to_torch(unit):
    x, y = line()
    expected = np.column_stack([np.ones(40), x])
    expected = expected @ np.linalg.lstsq(expected, y, rcond=None)[0]
    settings = TrainingSettings(learning_rate=0.03, n_steps=600)
    model = TorchLearner(linear(), settings=settings).train(
        x * unit + unit, squared_error_loss(7 + unit * y)
    )[0]
    np.testing.assert_allclose(
        (model.predict(x * unit + unit) - 7) / unit, expected, atol=0.02 * y.std()
    )


def test_the_unit_of_the_loss_does_not_matter_to_torch():
    x, y = line()
    small, large = (
        TorchLearner(linear(), settings=QUICK)
        .train(x, directed(y, 1e-9 * unit, 1e-8 * unit))[0]
        .predict(x)
        for unit in (1.0, 1e15)
    )
    np.testing.assert_allclose(small, large, atol=1e-6)


@pytest.mark.parametrize("label_shape", [(4,), (2, 2)])
def test_layers_that_are_multiplied_directly_predict_what_modules_predict(label_shape):
    rng = np.random.default_rng(0)
    modules = [mlp(3, label_shape, hidden=(5,), output="relu", seed=seed) for seed in range(3)]
    scales = [rng.uniform(1, 2, size=(3, *shape)) for shape in ((3,), (3,), label_shape)]
    stack = Stack(modules, tuple(torch.as_tensor(s).float() for s in (*scales, scales[-1])))
    assert stack.is_plain
    x = torch.as_tensor(rng.normal(size=(6, 3))).float()
    direct = stack.predict(x)
    stack.is_plain = False
    torch.testing.assert_close(direct, stack.predict(x))


class Centred(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(dim=0)


@pytest.mark.parametrize("layer", [nn.LeakyReLU(0.3), Centred()])
def test_layers_at_two_places_and_those_of_the_user_predict_what_modules_predict(layer):
    modules = [nn.Sequential(nn.Linear(3, 5), layer, nn.Linear(5, 2), layer) for _ in range(2)]
    zeros, ones = (torch.full((2, 3), value) for value in (0.0, 1.0))
    stack = Stack(modules, (zeros, ones, zeros[:, :2], ones[:, :2]))
    x = torch.linspace(-2, 2, 12).reshape(4, 3)
    torch.testing.assert_close(stack.predict(x), torch.stack([module(x) for module in modules]))


def test_a_module_keeps_its_own_state_and_its_own_range_if_told_so():
    x, y = line()
    module: Any = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    before = module[0].weight.detach().clone()
    model = TorchLearner(module, scale_labels=False, settings=QUICK).train(
        x, squared_error_loss(y)
    )[0]
    assert (module[0].weight == before).all()
    assert model.predict(x).min() >= 0


def test_a_model_that_must_be_trained_alone_stops_early_too():
    x, y = line()
    y[:5] = -50.0 + np.arange(5)[:, np.newaxis]
    learner = TorchLearner(network(3, nn.BatchNorm1d(8)), settings=QUICK)
    (model,) = learner.train(x, squared_error_loss(y), without(40, np.arange(5)))
    assert model.n_steps < QUICK.n_steps


@pytest.mark.parametrize("layer", [nn.Tanh(), nn.Dropout(0.2), nn.BatchNorm1d(8)])
def test_the_prediction_is_the_mean_over_initial_states(layer):
    x, y = line()
    settings = TrainingSettings(learning_rate=0.1, n_steps=20)
    learner = TorchLearner(network(3, layer), n_initialisations=3, settings=settings)
    model = learner.train(x, squared_error_loss(y))[0]
    alone = [replace(model, modules=(module,)).predict(x) for module in model.modules]
    assert np.std(alone, axis=0).min() > 0
    np.testing.assert_allclose(model.predict(x), np.mean(alone, axis=0), rtol=1e-6)
    np.testing.assert_array_equal(
        learner.train(x, squared_error_loss(y))[0].predict(x), model.predict(x)
    )


def test_folds_trained_at_once_do_not_see_what_they_hold_out():
    x, y = line(30)
    noise = np.random.default_rng(1).normal(size=y.shape)
    other = y + noise
    other = (other - other.mean(axis=0)) / other.std(axis=0) * y.std(axis=0) + y.mean(axis=0)
    settings = TrainingSettings(learning_rate=0.05, n_steps=60, validate_every=60)
    learner = TorchLearner(linear(), settings=settings)
    twice = squared_error_loss(np.concatenate([y, other]))  # scaled as each half is
    held_out = [np.arange(30, 60), np.arange(30)]
    masks = without(60, *held_out)
    first, _ = learner.train(np.concatenate([x, x]), twice, masks)
    alone = learner.train(x, squared_error_loss(y), n_steps=60)[0]
    assert first.n_steps == 60
    np.testing.assert_allclose(first.predict(x), alone.predict(x), atol=1e-4)
    both = np.concatenate([x, x])
    unstopped, _ = learner.train(both, twice, masks, n_steps=60)
    np.testing.assert_array_equal(unstopped.predict(x), first.predict(x))


def test_a_network_on_a_loss_of_decisions_starts_from_baseline():
    problem = lodl.domains.TopK(1)
    x, y = line(30)
    loss = lodl.learn_loss(problem, y, family=lodl.DecisionHinges(), n_samples=5)
    settings = TrainingSettings(learning_rate=0.05, n_steps=40, patience=40)
    learner = TorchLearner(network(3), n_initialisations=1, settings=settings)
    parts = np.array_split(np.arange(30), 3)
    squared = learner.train(x, squared_error_loss(y), without(30, *parts))
    unmoved = learner.train(x, loss, without(30, *parts), n_steps=0)
    for before, after in zip(squared, unmoved, strict=True):
        np.testing.assert_array_equal(before.predict(x), after.predict(x))
    assert np.var(learner.train(x, loss, n_steps=0)[0].predict(x) - y) < 0.5 * np.var(y)


def test_baseline_with_scikit_learn_is_a_plain_fit():
    x, y = line()
    model = SklearnLearner(LinearRegression()).train(x, squared_error_loss(y))[0]
    np.testing.assert_allclose(model.predict(x), LinearRegression().fit(x, y).predict(x))
    assert model.n_steps == 0


@pytest.mark.parametrize("estimator", [BayesianRidge(), DecisionTreeRegressor(max_depth=5)])
def test_corrections_lower_the_loss_on_new_instances(estimator, monkeypatch):
    monkeypatch.setattr(LinearForm, "of", lambda *_: None)  # as models that are not linear
    (x, new_x), (y, new_y) = (np.split(part, [200]) for part in line(2200))
    loss, new_loss = directed(y, 5.0, 0.2), directed(new_y, 5.0, 0.2)
    learner = SklearnLearner(estimator)
    base = learner.train(x, squared_error_loss(y))[0].predict(new_x)
    (after,) = learner.train(x, loss, without(200, np.arange(50)))
    assert after.n_steps >= 1
    assert new_loss.value(after.predict(new_x)).mean() < 0.8 * new_loss.value(base).mean()


def test_a_learner_is_found_for_what_a_user_hands_over():
    assert isinstance(learner_for(None), LinearLearner)
    assert isinstance(learner_for(nn.Linear(2, 3), seed=4), TorchLearner)
    learner: Any = learner_for(nn.Linear(2, 3), seed=4)
    assert learner.seed == 4
    assert isinstance(learner_for(Ridge()), SklearnLearner)
    own = TorchLearner(linear(), n_initialisations=5)
    assert learner_for(own) is own


def trained():
    x, y = line(10)
    learner = TorchLearner(linear(), settings=TrainingSettings(n_steps=1))
    return learner.train(x, squared_error_loss(y))[0]


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_torch_takes_frames_of_numbers_and_names_other_columns(frame):
    frames = pytest.importorskip(frame)
    x, y = line(10)
    numbers = frames.DataFrame({"a": x[:, 0], "b": x[:, 1]})
    np.testing.assert_array_equal(trained().predict(numbers), trained().predict(x))
    colours = frames.DataFrame({"a": x[:, 0], "colour": ["red"] * 10})
    with pytest.raises(InvalidInputError, match="got other values in 'colour'"):
        TorchLearner(linear()).train(colours, squared_error_loss(y))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: learner_for(Ridge), "`estimator` must be an instance, got the class Ridge"),
        (lambda: learner_for("linear"), "`estimator` must be None, a PyTorch module"),
        (lambda: SklearnLearner(3), "`estimator` must be a regressor with a `fit` method"),
        (
            lambda: TorchLearner(linear(), n_initialisations=0),
            "`n_initialisations` must be a whole number",
        ),
        (
            lambda: TorchLearner(linear()).train(
                np.ones((3, 2)), squared_error_loss(np.ones((4, 1)))
            ),
            "`x` must have one row per instance",
        ),
        (
            lambda: TorchLearner(linear()).train(
                np.full((4, 2), np.nan), squared_error_loss(np.eye(4))
            ),
            "`X` must be finite",
        ),
        (
            lambda: TorchLearner(nn.Linear(5, 4)).train(np.eye(4), squared_error_loss(np.eye(4))),
            r"`module` must take features of shape \(n, \*\(4,\)\)",
        ),
        (
            lambda: TorchLearner(nn.Linear(4, 3)).train(np.eye(4), squared_error_loss(np.eye(4))),
            r"`module` must return a tensor of shape \(n, \*\(4,\)\)",
        ),
        (
            lambda: trained().predict(np.ones((4, 3))),
            "`x` must have the 2 features that the model was trained with, got 3",
        ),
        (
            lambda: LearnedLossModule(squared_error_loss(np.eye(4)))(np.eye(4), [0, 1, 2, 3]),
            "`y_hat` must be a tensor, got ndarray",
        ),
        (
            lambda: LinearLearner().train(np.ones((4, 3, 2)), squared_error_loss(np.eye(4))),
            "`X` has 3 items, which must divide the 4 values",
        ),
    ],
)
def test_bad_arguments_are_named(call, match):
    with pytest.raises(InvalidInputError, match=match):
        call()


@pytest.mark.parametrize(
    "estimator",
    [
        TransformedTargetRegressor(LinearRegression(), func=np.log, inverse_func=np.exp),
        PoissonRegressor(),
        MultiOutputRegressor(DecisionTreeRegressor(max_depth=3)),
        StackingRegressor([("tree", DecisionTreeRegressor(max_depth=2))]),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("over", [10.0, None], ids=["fitted to regrets", "made of decisions"])
def test_models_that_are_particular_about_their_targets_are_trained(estimator, over):
    x, y = line(60)
    y = np.exp(0.5 * y)  # positive, and shifted far enough not to be
    if over is None:
        loss = lodl.learn_loss(lodl.domains.TopK(1), y, family=lodl.DecisionHinges(), n_samples=10)
    else:
        loss = directed(y, over, 0.1)
    learner = learner_for(estimator)
    assert isinstance(learner, SklearnLearner)
    assert np.isfinite(learner.train(x, loss)[0].predict(x)).all()
