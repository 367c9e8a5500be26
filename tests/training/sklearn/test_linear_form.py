"""scikit-learn's linear models, trained on a learned loss from their own solution on."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    MultiTaskLasso,
    PoissonRegressor,
    Ridge,
    RidgeCV,
    SGDRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVR
from sklearn.tree import DecisionTreeRegressor

import lodl
from lodl.losses import DirectedWeightedMSE, FitErrors, LearnedLoss, squared_error_loss
from lodl.training import load_predictor
from lodl.training.corrected import CorrectedPredictor
from lodl.training.linear import LinearLearner
from lodl.training.sklearn import SklearnLearner, SklearnPredictor
from lodl.training.sklearn._linear_form import LinearForm

LINEAR = {
    "least squares": LinearRegression(),
    "without a constant": LinearRegression(fit_intercept=False),
    "ridge": Ridge(3.0),
    "ridge, tuned": RidgeCV(),
    "lasso": Lasso(0.05),
    "several outputs at once": MultiTaskLasso(0.05),
    "elastic net": ElasticNet(0.05),
    "one output at a time": HuberRegressor(),
    "Bayesian": BayesianRidge(),
    "support vectors": make_pipeline(StandardScaler(), LinearSVR(max_iter=100_000, random_state=0)),
    "stochastic": SGDRegressor(random_state=0),
    "scaled": make_pipeline(StandardScaler(), Ridge()),
    "polynomial": make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge()),
    "a pipeline of one step": make_pipeline(Ridge()),
    "a search": GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2),
    "a search in a pipeline": make_pipeline(
        StandardScaler(), GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2)
    ),
    "a copy for each output": MultiOutputRegressor(HuberRegressor()),
    "a copy for each output in a pipeline": make_pipeline(
        StandardScaler(), MultiOutputRegressor(Ridge())
    ),
    "a search over a pipeline": GridSearchCV(
        make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 1.0]}, cv=2
    ),
}
OTHERS = {
    "a link that is not linear": PoissonRegressor(),
    "weights that must stay positive": Ridge(positive=True),
    "a tree": DecisionTreeRegressor(max_depth=2),
    "other features for every output": make_pipeline(
        SelectKBest(f_regression, k=1), HuberRegressor()
    ),
}


def data(n=60, n_labels=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 50.0, 0.0, -3.0]
    y = (x / [1.0, 10.0, 0.1, 1.0]) @ rng.normal(size=(4, n_labels))
    return x, 20 + y - y.min() + rng.normal(size=y.shape)


def directed(y, over=10.0, under=0.1):
    phi = {"w_plus": np.full(y.shape, over), "w_minus": np.full(y.shape, under)}
    return LearnedLoss(DirectedWeightedMSE(), y, phi, FitErrors.empty(len(y)), {})


@pytest.mark.parametrize("name", LINEAR)
def test_a_linear_model_is_trained_on_the_loss_itself_and_stays_what_it_is(name):
    x, y = data()
    learner, loss = SklearnLearner(LINEAR[name]), directed(y)
    before = learner.train(x, squared_error_loss(y))[0]
    after = learner.train(x, loss, n_steps=200)[0]
    assert after.is_linear
    assert after.n_steps == 200
    assert loss.value(after.predict(x)).mean() < loss.value(before.predict(x)).mean()
    if "search" not in name and "copy" not in name:
        assert list(map(type, after.models)) == list(map(type, before.models))
    assert all(type(one.coef_) is np.ndarray for one in after.models if hasattr(one, "coef_"))


@pytest.mark.slow
@pytest.mark.parametrize("name", LINEAR)
def test_no_step_changes_nothing(name):
    x, y = data()
    learner = SklearnLearner(LINEAR[name])
    before = learner.train(x, squared_error_loss(y))[0].predict(x)
    np.testing.assert_allclose(learner.train(x, directed(y), n_steps=0)[0].predict(x), before)
    # The baseline itself is left as it was.
    learner.train(x, directed(y), n_steps=20)
    np.testing.assert_array_equal(learner.train(x, squared_error_loss(y))[0].predict(x), before)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_linear_is_corrected(name):
    x, y = data()
    learner = SklearnLearner(OTHERS[name])
    assert LinearForm.of(learner.train(x, squared_error_loss(y))[0].models, x) is None
    assert isinstance(learner.train(x, directed(y))[0], CorrectedPredictor)


def test_least_squares_agrees_with_our_own_linear_model():
    x, y = data()
    loss, is_in = directed(y), np.arange(60) >= 20
    models = [
        learner.train(x, loss, is_in[np.newaxis])[0]
        for learner in (LinearLearner(), SklearnLearner(LinearRegression()))
    ]
    assert models[0].n_steps == pytest.approx(models[1].n_steps, abs=20)  # flat at its end
    ours, theirs = (model.predict(x) for model in models)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3)


def test_a_lasso_keeps_its_features():
    x, y = data()
    learner = SklearnLearner(Lasso(0.5))
    before = learner.train(x, squared_error_loss(y))[0].models
    after = learner.train(x, directed(y))[0].models
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one.coef_ == 0, other.coef_ == 0)
        assert (one.coef_ == 0).any()
        assert not np.allclose(one.coef_, other.coef_)


def test_a_constant_that_was_not_fitted_stays_zero():
    x, y = data()
    (model,) = SklearnLearner(Ridge(fit_intercept=False)).train(x, directed(y))[0].models
    assert model.intercept_ == 0
    np.testing.assert_allclose(model.predict(np.zeros((1, 4))), np.zeros((1, 3)))


def test_items_share_one_model():
    domain = lodl.domains.item_knapsack(sizes=(30, 1, 1), n_items=5)
    part = domain.splits.train
    learner, loss = SklearnLearner(Ridge()), directed(part.y)
    before = learner.train(part.x, squared_error_loss(part.y))[0]
    after = learner.train(part.x, loss)[0]
    assert after.is_linear
    assert len(after.models) == 1
    assert loss.value(after.predict(part.x)).mean() < loss.value(before.predict(part.x)).mean()


def test_frames_and_categories_go_through_the_pipeline():
    pandas = pytest.importorskip("pandas")
    x, y = data()
    frame = pandas.DataFrame({"size": x[:, 0], "colour": ["red", "green", "blue"] * 20})
    by_colour = ColumnTransformer(
        [("colour", OneHotEncoder(), ["colour"])], remainder="passthrough", sparse_threshold=1.0
    )
    learner = SklearnLearner(make_pipeline(by_colour, Ridge()))
    loss = directed(y)
    (after,) = learner.train(frame, loss, np.arange(60)[np.newaxis] >= 20)
    assert after.is_linear
    assert after.n_steps > 0
    before = learner.train(frame, squared_error_loss(y))[0]
    assert loss.value(after.predict(frame)).mean() < loss.value(before.predict(frame)).mean()


def test_linear_models_average_into_one_that_can_be_read():
    x, y = data()
    learner = SklearnLearner(Ridge())
    models = [learner.train(x[i:], directed(y[i:]))[0] for i in (0, 20)]
    (mean,) = SklearnPredictor.mean(models)
    np.testing.assert_allclose(mean.predict(x), np.mean([m.predict(x) for m in models], axis=0))
    assert mean.models[0].coef_.shape == (3, 4)
    baseline = learner.train(x, squared_error_loss(y))[0]
    scaled = SklearnLearner(make_pipeline(StandardScaler(), Ridge())).train(x, directed(y))[0]
    for others in ([models[0], baseline], [scaled, scaled]):
        assert SklearnPredictor.mean(others) == others


@pytest.mark.slow
def test_a_trained_pipeline_is_saved_and_loaded(tmp_path):
    pytest.importorskip("skops")
    x, y = data()
    model = SklearnLearner(make_pipeline(StandardScaler(), Ridge())).train(x, directed(y))[0]
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load_predictor(tmp_path / "model").predict(x), model.predict(x))


def test_the_penalty_of_a_model_is_that_of_its_own_objective():
    x, y = data()
    n = len(x)
    form = LinearForm.of([Ridge(3.0).fit(x, y)], x)
    np.testing.assert_allclose(form.penalty(n), 3.0 / n)
    z, centred = x - x.mean(axis=0), y - y.mean(axis=0)
    slope = -2 * z.T @ (centred - z @ form.weights) / n + 2 * form.penalty(n) * form.weights
    np.testing.assert_allclose(slope, 0.0, atol=1e-8)
    models = [ElasticNet(0.1, l1_ratio=0.5, tol=1e-10).fit(x, column) for column in y.T]
    form = LinearForm.of(models, x)
    slope = -2 * z.T @ (centred - z @ form.weights) / n + 2 * form.penalty(n) * form.weights
    np.testing.assert_allclose(slope[form.weights != 0], 0.0, atol=1e-4)
    form = LinearForm.of([LinearRegression().fit(x, y)], x)
    assert (form.penalty(n) == 0).all()
