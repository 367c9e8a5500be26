import numpy as np
import pytest

from lodl.errors import InvalidInputError, ModelFolderError
from lodl.losses import DirectedWeightedMSE, FitErrors, LearnedLoss, squared_error_loss
from lodl.training import learner_for, load_predictor

catboost = pytest.importorskip("catboost")
N, D = 60, 3


def regressor(**params):
    defaults = {"n_estimators": 30, "depth": 3, "learning_rate": 0.3}
    return catboost.CatBoostRegressor(**{**defaults, **params})


def directed(y, over=10.0, under=0.1):
    phi = {"w_plus": np.full(y.shape, over), "w_minus": np.full(y.shape, under)}
    return LearnedLoss(DirectedWeightedMSE(), y, phi, FitErrors.empty(len(y)), {})


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 2))
    return x, 10 + x @ rng.normal(size=(2, D)) + 0.5 * rng.normal(size=(N, D))


@pytest.mark.slow
def test_the_number_of_trees_is_that_with_the_least_learned_loss(data):
    x, y = data
    loss, (train, held_out) = directed(y, 2.0, 0.5), np.split(np.arange(N), [40])
    learner = learner_for(regressor(n_estimators=60))
    (model,) = learner.train(x, loss, np.arange(N)[np.newaxis] < 40)
    scores = [
        loss.subset(held_out)
        .value(learner.train(x[train], loss.subset(train), n_steps=n)[0].predict(x[held_out]))
        .mean()
        for n in range(1, model.n_steps + 4)
    ]
    assert model.n_steps == 1 + np.argmin(scores)
    refit = learner.train(x[train], loss.subset(train), n_steps=model.n_steps)[0]
    np.testing.assert_allclose(refit.predict(x), model.predict(x))


def test_the_regressor_is_used_and_not_changed(data):
    x, y = data
    model = catboost.CatBoostRegressor(num_trees=7, eta=0.02, random_state=3, silent=True)
    before = repr(model.get_params())
    slow = learner_for(model).train(x, squared_error_loss(y))[0]
    fast = learner_for(regressor(n_estimators=7)).train(x, squared_error_loss(y))[0]
    assert repr(model.get_params()) == before
    assert not model.is_fitted()
    assert slow.n_steps == fast.n_steps == 7
    assert np.var(slow.predict(x)) < 0.7 * np.var(fast.predict(x))


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_frames_have_names_categories_and_missing_values(frame, tmp_path):
    frames = pytest.importorskip(frame)
    rng = np.random.default_rng(0)
    size, colour = rng.normal(size=N), rng.choice(["red", "green", "blue"], size=N)
    y = np.column_stack([size + 5 * (colour == "red"), size - 5 * (colour == "blue")])
    size[::7] = np.nan
    some = [None if i == 3 else one for i, one in enumerate(colour)]
    kinds = {"size": size, "colour": some}
    x = frames.DataFrame(kinds)
    if frame == "pandas":
        x = x.assign(colour=frames.Categorical(some)).set_axis(rng.permutation(N))
    else:
        x = x.with_columns(frames.Series("colour", some, dtype=frames.Categorical))
    model = learner_for(regressor()).train(x, directed(y, 1.0, 0.9))[0]
    p = model.predict(x)
    assert np.mean((p - y) ** 2) < 0.3 * np.var(y)
    np.testing.assert_array_equal(model.predict(frames.DataFrame(kinds)), p)
    model.save(tmp_path)
    np.testing.assert_array_equal(load_predictor(tmp_path).predict(x), p)


@pytest.mark.parametrize("n_steps", [0, 5])
def test_a_saved_model_predicts_the_same(n_steps, data, tmp_path):
    x, y = data
    model = learner_for(regressor()).train(x, directed(y), n_steps=n_steps)[0]
    model.save(tmp_path)
    again = load_predictor(tmp_path)
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    assert again.n_steps == n_steps
    if n_steps:
        (tmp_path / "trees_0_0.cbm").write_bytes(b"x")
        with pytest.raises(ModelFolderError, match="missing or damaged"):
            load_predictor(tmp_path)


def test_equal_labels_are_predicted_as_they_are(data):
    x, _ = data
    model = learner_for(regressor()).train(x, squared_error_loss(np.full((N, D), 4.0)))[0]
    np.testing.assert_array_equal(model.predict(x), 4.0)


def test_another_loss_function_is_refused():
    with pytest.raises(InvalidInputError, match="`loss_function` of the estimator must be left"):
        learner_for(regressor(loss_function="MAE"))
