"""The contract of every framework that boosts trees on gradients."""

import doctest
import pickle
from typing import Any

import numpy as np
import pytest

from lodl.errors import InvalidInputError
from lodl.losses import (
    DecisionHinges,
    DecisionRanking,
    DirectedWeightedMSE,
    FitErrors,
    LearnedLoss,
    Quadratic,
    squared_error_loss,
)
from lodl.testing import check_learner
from lodl.training import learner_for, load_predictor
from lodl.training.boosting import _trees, objective
from lodl.training.corrected import CorrectedPredictor

REGRESSORS = {
    "xgboost": "XGBRegressor",
    "lightgbm": "LGBMRegressor",
    "catboost": "CatBoostRegressor",
}
N, D = 60, 3


OWN_PARAMETERS: dict[str, dict[str, Any]] = {
    "xgboost": {},
    "lightgbm": {"min_child_samples": 5, "subsample_freq": 1},
    "catboost": {"bootstrap_type": "Bernoulli", "subsample": 0.9},
}


def maker(name):
    """Return a function that makes a small regressor of a framework, if it is installed."""
    module = pytest.importorskip(name)
    defaults = {"max_depth": 3, "n_estimators": 20, "learning_rate": 0.3, **OWN_PARAMETERS[name]}
    return lambda **params: getattr(module, REGRESSORS[name])(**{**defaults, **params})


@pytest.fixture(params=REGRESSORS)
def regressor(request):
    return maker(request.param)


@pytest.fixture(params=["xgboost", "lightgbm"])
def with_objective(request):
    """Make a regressor that takes a custom objective of several outputs."""
    return maker(request.param)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 2))
    return x, 10 + x @ rng.normal(size=(2, D)) + 0.3 * rng.normal(size=(N, D))


def directed(y, over=10.0, under=0.1):
    phi = {"w_plus": np.full(y.shape, over), "w_minus": np.full(y.shape, under)}
    return LearnedLoss(DirectedWeightedMSE(), y, phi, FitErrors.empty(len(y)), {})


def of_decisions(family, y, seed=1):
    """Return a loss that knows four decisions of each instance; predicting too much costs."""
    rng = np.random.default_rng(seed)
    regret = rng.uniform(0.1, 0.4, size=(len(y), 5)) * [0, 1, 1, 1, 1]  # the label's own first
    slope = rng.integers(-1, 1, size=(len(y), 5, D)) * (regret > 0)[..., np.newaxis] * 1.0
    phi = family.made_of(regret, slope, 0.01 * D, np.ones((len(y), D)), unit=0.25)
    return LearnedLoss(family, y, phi, FitErrors.empty(len(y)), {})


def quadratic(y):
    family, rng = Quadratic(), np.random.default_rng(2)
    shapes = family.parameter_shapes(D)
    phi = {name: np.abs(rng.normal(size=(len(y), *shape))) for name, shape in shapes.items()}
    return LearnedLoss(family, y, phi, FitErrors.empty(len(y)), {})


LOSSES = {
    "directed": directed,
    "quadratic": quadratic,
    "hinges": lambda y: of_decisions(DecisionHinges(), y),
    "ranking": lambda y: of_decisions(DecisionRanking(), y),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_the_loss_and_hessians_are_about_one(name, data):
    _, y = data
    loss = LOSSES[name](y)
    function = objective(loss)
    p = y + np.random.default_rng(3).normal(size=y.shape)
    gradient, hessian = function.derivatives(p)
    steps = 1e-6 * np.eye(D)
    differences = np.stack(
        [(loss.value(p + step) - loss.value(p - step)) / 2e-6 for step in steps], axis=1
    )
    np.testing.assert_allclose(gradient * function.unit, differences, rtol=1e-4, atol=1e-5)
    assert 0.2 < hessian.mean() < 5
    assert hessian.min() > 0


def test_the_hessian_of_squared_error_is_one(data):
    gradient, hessian = objective(squared_error_loss(data[1])).derivatives(data[1] + 2.0)
    np.testing.assert_allclose(hessian, 1.0)
    np.testing.assert_allclose(gradient, 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("items", [False, True])
def test_the_contract_is_kept(regressor, items):
    check_learner(learner_for(regressor()), items=items)


@pytest.mark.parametrize("name", ["directed", "quadratic"])
def test_trees_from_the_mean_label_lower_the_learned_loss(name, regressor, data):
    x, y = data
    loss, learner = LOSSES[name](y), learner_for(regressor())
    baseline = learner.train(x, squared_error_loss(y), n_steps=8)[0]
    model = learner.train(x, loss, n_steps=60)[0]
    assert loss.value(model.predict(x)).mean() < loss.value(baseline.predict(x)).mean()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hinges", "ranking"])
def test_trees_from_baseline_move_predictions_where_decisions_cost_less(name, regressor, data):
    x, y = data
    learner = learner_for(regressor())
    before = learner.train(x, squared_error_loss(y))[0].predict(x)
    after = learner.train(x, LOSSES[name](y), n_steps=10)[0].predict(x)
    assert after.mean() < before.mean() - 0.04 * y.std()


def test_training_stops_where_the_validation_loss_is_least(regressor, data):
    x, y = data
    train, held_out = np.split(np.arange(N), [40])
    noise = np.random.default_rng(5).normal(size=y.shape)  # nothing to learn
    loss = squared_error_loss(noise)
    learner = learner_for(regressor(n_estimators=50))
    (model,) = learner.train(x, loss, np.arange(N)[np.newaxis] < 40)
    again = learner.train(x[train], loss.subset(train), n_steps=model.n_steps)[0]
    longer = learner.train(x[train], loss.subset(train), n_steps=50)[0]
    assert model.n_steps < 50
    np.testing.assert_allclose(model.predict(x), again.predict(x), atol=1e-5)
    scores = [loss.subset(held_out).value(m.predict(x[held_out])).mean() for m in (model, longer)]
    assert scores[0] < scores[1]


def test_without_a_step_the_prediction_is_that_of_the_start(regressor, data):
    x, y = data
    learner = learner_for(regressor())
    cold = learner.train(x, squared_error_loss(y), n_steps=0)[0]
    np.testing.assert_allclose(cold.predict(x), np.broadcast_to(y.mean(axis=0), y.shape))
    warm = learner.train(x, LOSSES["hinges"](y), n_steps=0)[0]
    assert np.var(warm.predict(x) - y) < 0.8 * np.var(y)
    assert (cold.n_steps, warm.n_steps) == (0, 0)


def test_what_was_prepared_is_not_trained_again(regressor, data, monkeypatch):
    x, y = data
    learner: Any = learner_for(regressor())
    calls = []
    trees = type(learner).trees

    def counted(*arguments):
        calls.append(1)
        return trees(*arguments)

    monkeypatch.setattr(type(learner), "trees", staticmethod(counted))
    prepared = learner.prepare(x, y)
    assert not calls
    learner.train(x, of_decisions(DecisionHinges(), y), prepared=prepared, n_steps=1)
    first = len(calls)
    assert first == 5  # three inner folds, the baseline, the loss
    learner.train(x, of_decisions(DecisionHinges(margin=1.0), y), prepared=prepared, n_steps=1)
    assert len(calls) == first + 1
    learner.train(x, squared_error_loss(y), prepared=prepared, n_steps=1)
    assert len(calls) == first + 1


def without(parts):
    """Return masks that leave out the parts."""
    return np.array([~np.isin(np.arange(N), part) for part in parts])


@pytest.mark.slow
def test_residuals_of_a_fold_do_not_depend_on_the_labels_held_out(regressor, data):
    x, y = data
    parts = np.array_split(np.random.default_rng(0).permutation(N), 4)
    other, mask = y.copy(), without(parts)[0]
    other[parts[0]] += 1e-3  # too little to change the number of trees
    learner = learner_for(regressor(n_estimators=10))
    first, moved = (
        learner.prepare(x, labels, without(parts))[0].residuals for labels in (y, other)
    )
    np.testing.assert_array_equal(first[mask], moved[mask])
    seen = learner.train(x, squared_error_loss(y))[0].predict(x[mask])
    assert np.var(first[mask]) > np.var(seen - y[mask])


@pytest.mark.slow
def test_folds_trained_together_are_judged_on_what_they_have_not_seen(regressor, data):
    x, y = data
    parts = np.array_split(np.arange(N), 4)
    learner, loss = learner_for(regressor(n_estimators=10)), LOSSES["hinges"](y)
    models: Any = learner.train(x, loss, without(parts))
    for model, part in zip(models, parts, strict=True):
        before = model.base.base if isinstance(model.base, CorrectedPredictor) else model.base
        held_out = loss.subset(part)
        assert (
            held_out.value(model.predict(x[part])).mean()
            <= held_out.value(before.predict(x[part])).mean()
        )


def test_the_regressor_is_used_and_not_changed(regressor, data):
    x, y = data
    model = regressor(n_estimators=7, learning_rate=0.05)
    before = repr(model.get_params())
    slow = learner_for(model).train(x, squared_error_loss(y))[0]
    fast = learner_for(regressor(n_estimators=7, learning_rate=0.5)).train(
        x, squared_error_loss(y)
    )[0]
    assert repr(model.get_params()) == before
    assert slow.n_steps == 7
    assert np.var(slow.predict(x)) < 0.7 * np.var(fast.predict(x))


@pytest.mark.parametrize("name", ["directed", "hinges"])
def test_labels_far_from_zero_lose_no_digits(name, regressor, data):
    x, y = data
    near, far = (
        learner_for(regressor()).train(x, LOSSES[name](labels), n_steps=5)[0].predict(x) - labels
        for labels in (y, y + 1e8)
    )
    np.testing.assert_allclose(near, far, atol=1e-4)


def test_constraints_of_the_regressor_hold_for_the_whole_model(with_objective, data):
    x, y = data
    model = learner_for(with_objective(monotone_constraints=(-1, 0))).train(
        x, LOSSES["hinges"](y), n_steps=10
    )[0]
    grid = np.column_stack([np.linspace(-2, 2, 20), np.zeros(20)])
    assert np.diff(model.predict(grid), axis=0).max() <= 1e-6


def test_the_seed_is_the_regressors_own_or_else_the_learners(regressor, data):
    x, y = data

    def predictions(seed, **params):
        learner = learner_for(regressor(subsample=0.5, **params), seed=seed)
        return learner.train(x, squared_error_loss(y), n_steps=3)[0].predict(x)

    assert np.array_equal(predictions(0), predictions(0))
    assert not np.array_equal(predictions(0), predictions(1))
    assert np.array_equal(predictions(0, random_state=7), predictions(1, random_state=7))
    assert not np.array_equal(predictions(0, random_state=7), predictions(0, random_state=8))


def test_the_unit_of_the_loss_does_not_matter(regressor, data):
    x, y = data
    models = [
        learner_for(regressor()).train(x, directed(y, over=10 * unit, under=unit), n_steps=5)[0]
        for unit in (1e-9, 1e9)
    ]
    np.testing.assert_allclose(models[0].predict(x), models[1].predict(x), rtol=1e-5)


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_frames_have_names_categories_and_missing_values(frame, regressor, tmp_path):
    frames = pytest.importorskip(frame)
    rng = np.random.default_rng(0)
    size, colour = rng.normal(size=N), rng.choice(["red", "green", "blue"], size=N)
    y = np.column_stack([size + 5 * (colour == "red"), size - 5 * (colour == "blue")])
    size[::7] = np.nan
    if frame == "pandas":
        x = frames.DataFrame(
            {"size": size, "colour": frames.Categorical(colour)}, index=rng.permutation(N) + 100
        )
        other = frames.DataFrame(  # the same rows, other codes of the categories
            {
                "size": size[:5],
                "colour": frames.Categorical(colour[:5], categories=["red", "green", "blue"]),
            }
        )
    else:
        kinds = {"colour": frames.Categorical}
        x = frames.DataFrame({"size": size, "colour": colour}, schema_overrides=kinds)
        other = frames.DataFrame(
            {"size": size[:5][::-1], "colour": colour[:5][::-1]}, schema_overrides=kinds
        ).reverse()
    learner = learner_for(regressor(**categories_of(regressor)))
    (model,) = learner.train(x, of_two(y), np.arange(N)[np.newaxis] >= 10)
    p = model.predict(x)
    assert np.mean((p - y) ** 2) < 0.3 * np.var(y)
    np.testing.assert_allclose(model.predict(other), p[:5])
    model.save(tmp_path)
    np.testing.assert_allclose(load_predictor(tmp_path).predict(other), p[:5])


def test_categories_are_known_by_name_and_new_ones_are_missing(regressor, tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    colour = rng.choice(["blue", "green", "red"], size=N)
    y = np.column_stack([5.0 * (colour == "red"), -5.0 * (colour == "blue")])

    def table(*colours):
        kind = pandas.Series(colours, dtype="category")  # with the categories it has, as of a file
        return pandas.DataFrame({"size": np.zeros(len(colours)), "colour": kind})

    learner = learner_for(regressor(**categories_of(regressor)))
    model = learner.train(table(*colour), squared_error_loss(y), n_steps=10)[0]
    model.save(tmp_path)
    for one in (model, load_predictor(tmp_path)):
        red, blue, missing = one.predict(table("red", "blue", None))
        np.testing.assert_array_equal(one.predict(table("blue", "red")), [blue, red])
        np.testing.assert_array_equal(one.predict(table("red")), [red])
        np.testing.assert_array_equal(
            one.predict(table("aqua", "red", "zebra")), [missing, red, missing]
        )
        assert red[0] - missing[0] > 0.5


def categories_of(regressor):
    return {"enable_categorical": True} if "XGB" in type(regressor()).__name__ else {}


def of_two(y):
    return directed(y, 1.0, 0.9)


def test_a_saved_model_predicts_the_same(regressor, data, tmp_path):
    x, y = data
    for name in ("directed", "hinges"):
        model = learner_for(regressor()).train(x, LOSSES[name](y), n_steps=5)[0]
        model.save(tmp_path / name)
        again = load_predictor(tmp_path / name)
        np.testing.assert_array_equal(again.predict(x), model.predict(x))
        assert again.n_steps == 5


def test_bad_arguments_are_named(regressor, data):
    x, y = data
    learner = learner_for(regressor())
    model = learner.train(x, squared_error_loss(y), n_steps=1)[0]
    with pytest.raises(InvalidInputError, match="`x` must have the 2 features"):
        model.predict(x[:, :1])
    with pytest.raises(InvalidInputError, match="`x` must have one row per instance"):
        learner.train(x[:5], squared_error_loss(y))


def test_another_objective_and_texts_are_refused(with_objective, data):
    x, y = data
    with pytest.raises(InvalidInputError, match="`objective` of the estimator must be left"):
        learner_for(with_objective(objective="mae"))
    pandas = pytest.importorskip("pandas")
    texts = pandas.DataFrame({"a": x[:, 0], "colour": ["red"] * N})
    with pytest.raises(InvalidInputError, match=r"`X` .* columns .*colour"):
        learner_for(with_objective()).train(texts, squared_error_loss(y))


def test_objectives_are_plain_functions_for_a_call_of_ones_own(data):
    _, y = data
    loss = directed(y)
    function = objective(loss)
    gradient, hessian = function(np.zeros(y.shape), y)
    assert gradient.shape == hessian.shape == y.shape
    restored = pickle.loads(pickle.dumps(function))  # noqa: S301 - our own
    np.testing.assert_array_equal(restored(np.zeros(y.shape), y)[0], gradient)
    with pytest.raises(InvalidInputError, match="Predictions must be of the 60 instances"):
        function(np.zeros((5, 3)), np.zeros((5, 3)))


def test_the_example_of_the_objective_runs():
    results = doctest.testmod(_trees)
    assert results.attempted > 5
    assert results.failed == 0


def test_xgboost_takes_the_objective_in_both_of_its_interfaces(data):
    xgboost = pytest.importorskip("xgboost")
    x, y = data
    loss = directed(y, 3.0, 0.3)
    parameters = {"max_depth": 1, "base_score": 10.0, "nthread": 1}
    booster = xgboost.train(
        {**parameters, "num_target": D},
        xgboost.DMatrix(x, label=y),
        num_boost_round=100,
        obj=objective(loss),
    )
    model = xgboost.XGBRegressor(n_estimators=100, objective=objective(loss), **parameters)
    p = model.fit(x, y).predict(x)
    np.testing.assert_allclose(booster.predict(xgboost.DMatrix(x)), p, rtol=1e-5)
    plain = xgboost.XGBRegressor(n_estimators=100, **parameters).fit(x, y).predict(x)
    assert loss.value(p).mean() < loss.value(plain).mean()


def test_too_few_rows_for_a_leaf_of_lightgbm_leave_the_mean_label(data):
    lightgbm = pytest.importorskip("lightgbm")
    x, y = data[0][:12], data[1][:12]
    model = learner_for(lightgbm.LGBMRegressor(n_estimators=5)).train(x, squared_error_loss(y))[0]
    np.testing.assert_allclose(model.predict(x), np.broadcast_to(y.mean(axis=0), y.shape))


def test_lightgbm_takes_the_objective_in_both_of_its_interfaces(data):
    lightgbm = pytest.importorskip("lightgbm")
    x, y = data[0], data[1][:, :1]
    loss = directed(y, 3.0, 0.3)
    parameters = {"max_depth": 2, "num_threads": 1, "verbosity": -1}
    start = np.full(N, 10.0)
    booster = lightgbm.train(
        {**parameters, "objective": objective(loss)},
        lightgbm.Dataset(x, label=y[:, 0], init_score=start),
        num_boost_round=100,
    )
    model = lightgbm.LGBMRegressor(n_estimators=100, objective=objective(loss), **parameters)
    p = 10 + model.fit(x, y[:, 0], init_score=start).predict(x)
    np.testing.assert_allclose(10 + booster.predict(x), p)
    plain = lightgbm.LGBMRegressor(n_estimators=100, **parameters).fit(x, y[:, 0]).predict(x)
    assert loss.value(p[:, None]).mean() < loss.value(plain[:, None]).mean()
