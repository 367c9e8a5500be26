"""The regressor among scikit-learn's tools: clones, pipelines, searches, routing, its checks."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import lodl
from lodl import DecisionFocusedRegressor, DecisionHinges
from lodl.errors import InvalidInputError
from lodl.evaluation import regret_scorer
from lodl.oracle import Oracle
from lodl.problems import VectorisedProblem
from lodl.training import Learner, Predictor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.exp(X @ RNG.normal(size=(3, 4)))
CONTEXT = [{"open": is_open} for is_open in RNG.random((40, 4)) < 0.8]


class PickOpen(VectorisedProblem):
    """Picks the best of the entries that are open, and counts how often it is asked."""

    sense = "max"

    def __init__(self):
        self.n_calls = 0
        self.handle = (i for i in range(3))  # as of a solver: it cannot be copied

    def solve_many(self, y_hats, context):
        self.n_calls += len(y_hats)
        is_open = True if context is None else context["open"]
        return np.where(is_open, y_hats, -9).argmax(axis=1)

    def objective_many(self, zs, y, context):
        return y[zs]


class Linear(BaseEstimator, Learner):
    """Least squares on labels that a step along the loss has moved: a learner, and quick."""

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def train(self, x, loss, masks=None, *, prepared=None, n_steps=None):
        masks = np.ones((1, len(x)), dtype=bool) if masks is None else masks
        return [self.trained(x[mask], loss.subset(np.flatnonzero(mask))) for mask in masks]

    def trained(self, x, loss):
        mean = np.broadcast_to(loss.y.mean(axis=0), loss.y.shape)
        targets = loss.y - 0.1 * loss.gradient(mean)
        a = np.column_stack([np.ones(len(x)), x])
        penalty = self.alpha * np.diag([0.0, *np.ones(x.shape[1])])
        return LinearPredictor(np.linalg.solve(a.T @ a + penalty, a.T @ targets))


class LinearPredictor(Predictor):
    n_steps = 1

    def __init__(self, weights):
        self.weights = weights

    def predict(self, x):
        return np.column_stack([np.ones(len(x)), x]) @ self.weights


def quick(problem=None, estimator=None, **arguments):
    settings = {"families": (DecisionHinges(),), "n_rounds": 0, "n_samples": 3}
    estimator = Linear() if estimator is None else estimator
    return DecisionFocusedRegressor(problem or PickOpen(), estimator, **(settings | arguments))


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_a_clone_shares_the_problem_and_copies_the_estimator():
    model = quick(Oracle(PickOpen(), store="answers"), estimator=Ridge(2.0)).set_fit_request(
        groups=False
    )
    copy = clone(model)
    assert copy.oracle is model.oracle
    assert copy.estimator is not model.estimator
    assert copy.get_metadata_routing().fit.requests["groups"] is False
    copy.set_params(estimator__alpha=3.0, n_samples=4)
    assert (copy.estimator.alpha, copy.n_samples, model.estimator.alpha) == (3.0, 4, 2.0)
    copy.set_params(estimator=make_pipeline(Ridge()), estimator__ridge__alpha=5.0)
    assert copy.get_params()["estimator__ridge__alpha"] == 5.0
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        copy.set_params(depth=3)


def test_it_is_the_last_step_of_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), quick()).fit(X, Y)
    expected = quick().fit(StandardScaler().fit_transform(X), Y)
    np.testing.assert_array_equal(
        pipeline.predict(X), expected.predict(StandardScaler().fit(X).transform(X))
    )
    assert is_regressor(pipeline)
    assert (
        regret_scorer()(pipeline, X, Y)
        == pipeline.score(X, Y) * 0 - expected.regret(StandardScaler().fit_transform(X), Y).mean()
    )


@pytest.mark.slow
def test_a_pipeline_is_cross_validated_with_routing_and_weights():
    pipeline = make_pipeline(StandardScaler(), quick())
    with sklearn.config_context(enable_metadata_routing=True):
        assert np.isfinite(cross_val_score(pipeline, X, Y, cv=2)).all()
    model = quick().fit(X, Y)
    twice = np.r_[0:20, 0:40]  # the first half counts twice
    weights = np.repeat([2.0, 1.0], 20)
    assert model.score(X, Y, sample_weight=weights) == pytest.approx(
        model.score(X[twice], Y[twice])
    )


@pytest.mark.slow
def test_folds_are_scored_by_regret():
    scores = cross_val_score(quick(), X, Y, cv=2, scoring=regret_scorer())
    expected = [
        -quick().fit(X[train], Y[train]).regret(X[test], Y[test]).mean()
        for train, test in [(slice(20, 40), slice(20)), (slice(20), slice(20, 40))]
    ]
    np.testing.assert_array_equal(scores, expected)


def test_any_regressor_is_scored_by_the_regret_of_its_decisions():
    scorer = regret_scorer(PickOpen())
    model = Ridge().fit(X, Y)
    expected = lodl.evaluation.regret(PickOpen(), model.predict(X), Y)
    assert scorer(model, X, Y) == -expected.mean()
    assert scorer(make_pipeline(StandardScaler(), Ridge()).fit(X, Y), X, Y) <= 0
    with pytest.raises(InvalidInputError, match="Ridge has no problem: use"):
        regret_scorer()(model, X, Y)


@pytest.mark.slow
def test_a_search_over_several_settings_shares_its_answers(tmp_path):
    shared, alone = PickOpen(), PickOpen()
    model = quick(Oracle(shared, store=tmp_path / "answers"), n_samples=20)
    grid = {"estimator__alpha": [0.1, 1.0, 1e6]}
    search = GridSearchCV(model, grid, cv=2, scoring=regret_scorer()).fit(X, Y)
    assert search.best_params_["estimator__alpha"] < 1e6
    # Six fits on halves and one on everything cost as much as four fits. What they ask at labels
    # is asked once; they differ in where their own models predict.
    quick(alone, n_samples=20).fit(X, Y)
    assert shared.n_calls < 2 * alone.n_calls


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
def test_contexts_and_groups_reach_every_fold_once_routing_is_on():
    groups = np.arange(40) // 4
    search = GridSearchCV(
        quick(), {"estimator__alpha": [0.1, 1e6]}, cv=GroupKFold(2), scoring=regret_scorer()
    ).fit(X, Y, context=CONTEXT, groups=groups)
    best = search.best_estimator_
    np.testing.assert_array_equal(
        best.predict(X),
        quick(estimator=best.estimator).fit(X, Y, context=CONTEXT, groups=groups).predict(X),
    )
    by_score = cross_val_score(quick(), X, Y, cv=2, params={"context": CONTEXT})
    assert np.isfinite(by_score).all()


@pytest.mark.usefixtures("routing")
def test_requests_can_be_changed():
    model = quick().set_fit_request(context="capacities").set_score_request(context=False)
    requests = model.get_metadata_routing()
    assert requests.fit.requests == {"context": "capacities", "groups": True, "validation": None}
    assert requests.score.requests == {"context": False, "sample_weight": None}
    scorer = regret_scorer().set_score_request(context="capacities")
    scores = cross_val_score(
        model, X, Y, cv=2, scoring=scorer, params={"capacities": CONTEXT}, error_score="raise"
    )
    assert np.isfinite(scores).all()
    with pytest.raises(TypeError, match=r"Unexpected args: \{'weights'\}"):
        model.set_fit_request(weights=True)


@pytest.mark.parametrize("scoring", [None, regret_scorer()], ids=["score", "regret_scorer"])
def test_without_routing_a_context_that_is_lost_on_the_way_is_an_error(scoring):
    search = GridSearchCV(quick(), {"n_samples": [2]}, cv=2, scoring=scoring, error_score="raise")
    with pytest.raises(InvalidInputError, match="set_config\\(enable_metadata_routing=True\\)"):
        search.fit(X, Y, context=CONTEXT)


class Identity(VectorisedProblem):
    """The decision is the prediction: any label has one."""

    sense = "min"

    def solve_many(self, y_hats, context):
        return y_hats

    def objective_many(self, zs, y, context):
        return np.abs(zs - y).reshape(len(zs), -1).sum(axis=1)


@pytest.mark.slow
def test_labels_of_one_number_may_be_a_vector(tmp_path):
    y = Y[:, 0]
    column = quick(Identity(), Ridge()).fit(X, Y[:, :1])
    model = quick(Identity(), Ridge()).fit(X, y, validation=(X[:9], y[:9]))
    assert model.predict(X).shape == model.baseline_.predict(X).shape == (40,)
    model = quick(Identity(), Ridge()).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), column.predict(X)[:, 0])
    np.testing.assert_array_equal(model.decide(X), column.decide(X))
    assert model.decide(X)[0].shape == (1,)
    assert model.score(X, y) == model.score(X, Y[:, :1]) == column.score(X, y)
    scorer = regret_scorer(Identity())
    assert scorer(model, X, y) == scorer(Ridge().fit(X, y), X, y) * 0 - model.regret(X, y).mean()
    again = lodl.load_model(model.save(tmp_path / "model"), Identity())
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.baseline_.predict(X), model.baseline_.predict(X))


CHECKED = quick(Identity(), Ridge(), families=(), n_samples=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "check",
    [check for _, check in estimator_checks_generator(CHECKED)],
    ids=lambda check: check.func.__name__,
)
def test_scikit_learns_own_checks_pass(check):
    check(CHECKED)


def test_a_notebook_shows_the_parameters():
    model = quick(Identity(), Ridge(2.0))
    assert "DecisionFocusedRegressor" in repr(model)
    page = model._repr_html_()
    assert "sk-" in page
    assert "Ridge" in page
