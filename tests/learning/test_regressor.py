import logging
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostRegressor
from lightgbm import LGBMRegressor
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import HuberRegressor, Lasso, LinearRegression, Ridge, RidgeCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import get_tags
from torch import nn
from xgboost import XGBRegressor

import lodl
from lodl import (
    DecisionFocusedRegressor,
    DecisionHinges,
    DecisionRanking,
    DirectedWeightedMAE,
    DirectedWeightedMSE,
    Quadratic,
    WeightedMSE,
)
from lodl.domains import ShortestPath, TopK, item_knapsack, newsvendor, shortest_path
from lodl.errors import InvalidInputError, OracleError
from lodl.evaluation import regret
from lodl.learning import Schedule
from lodl.learning._defaults import Situation
from lodl.learning._folds import Trainer
from lodl.losses import is_squared_error
from lodl.oracle import ObjectiveKind, Oracle
from lodl.training.linear import LinearLearner
from lodl.training.torch import TorchLearner, TrainingSettings, mlp

pytestmark = pytest.mark.slow

DOMAIN: Any = shortest_path(11, sizes=(50, 10, 300), degree=6, noise=0.3)
DATA, TEST = DOMAIN.splits.train_and_validation, DOMAIN.splits.test
FAMILIES = (DecisionHinges(), DecisionHinges(squared_error=1.0))
TORCH = TorchLearner(
    nn.Linear(5, 40).double(),
    n_initialisations=1,
    settings=TrainingSettings(learning_rate=0.1, n_steps=60, patience=20),
)


SHOP = lodl.problem(
    lambda y_hat: y_hat, lambda z, y: float(np.maximum(z - y, 9 * (y - z)).sum()), sense="min"
)


class CountedPath(ShortestPath):
    n_calls = 0

    def solve_many(self, y_hats, context=None):
        CountedPath.n_calls += len(y_hats)
        return super().solve_many(y_hats, context)


def regressor(problem=DOMAIN.problem, estimator=None, **arguments):
    quick = {"families": FAMILIES, "n_samples": 8, "n_rounds": 2}
    return DecisionFocusedRegressor(problem, estimator, **(quick | arguments))


@pytest.fixture(scope="module")
def model():
    return regressor(estimator=TORCH).fit(DATA.x, DATA.y)


@pytest.fixture(scope="module")
def linear():
    return regressor().fit(DATA.x, DATA.y)


def squared_error(**options):
    return regressor(families=(), n_rounds=0, **options).fit(DATA.x, DATA.y)


def test_it_decides_better_than_squared_error_on_new_instances(model):
    assert model.result_.gain.mean > 0
    assert model.summary().startswith("Use this model: regret ")
    assert model.regret(TEST.x, TEST.y).mean() < 0.8 * squared_error().regret(TEST.x, TEST.y).mean()


def test_the_history_has_a_row_for_every_model_that_was_tried(model):
    names = [row.name for row in model.result_.trials]
    assert names[:4] == [
        "squared error",
        "DecisionHinges()",
        "DecisionHinges()",
        "DecisionHinges(squared_error=1.0)",
    ]
    assert [row.round for row in model.result_.trials[:4]] == [0, 1, 2, 2]
    assert "average of" in names[4]
    assert np.all(np.diff([row.n_calls for row in model.result_.trials]) >= 0)
    n_shown = 2 * len(model.result_.changes)
    assert model.result_.trials[-1].n_calls == model.result_.n_calls - n_shown


def test_held_out_regret_is_that_of_held_out_decisions(model):
    result = model.result_
    assert result.mean_selected == pytest.approx(result.trials[result.selected].regret)
    baselines = [row.regret for row in result.trials if row.name.startswith("squared error")]
    assert len(baselines) == 2  # the second by the solver
    assert model.result_.mean_baseline == pytest.approx(min(baselines))


def test_the_same_seed_gives_the_same_model(model):
    again = regressor(estimator=TORCH).fit(DATA.x, DATA.y)
    np.testing.assert_array_equal(again.predict(TEST.x), model.predict(TEST.x))
    one, other = (
        regressor(estimator=TORCH, families=(), n_rounds=0, random_state=seed).fit(DATA.x, DATA.y)
        for seed in (0, 1)
    )
    assert not np.array_equal(other.predict(TEST.x), one.predict(TEST.x))


def test_regret_score_and_decisions_are_those_of_the_predictions(model):
    y_hat = model.predict(TEST.x)
    expected = regret(DOMAIN.problem, y_hat, TEST.y)
    np.testing.assert_array_equal(model.regret(TEST.x, TEST.y), expected)
    constant = np.broadcast_to(DATA.y.mean(axis=0), TEST.y.shape)
    worst = regret(DOMAIN.problem, constant, TEST.y)
    assert model.score(TEST.x, TEST.y) == pytest.approx(1 - expected.mean() / worst.mean())
    for z, one in zip(model.decide(TEST.x[:5]), y_hat, strict=False):
        np.testing.assert_array_equal(z, DOMAIN.problem.solve(one, None))


def test_folds_share_their_answers_and_every_call_is_counted():
    problem = CountedPath(DOMAIN.problem.grid)
    CountedPath.n_calls = 0
    model = regressor(problem).fit(DATA.x, DATA.y)
    assert CountedPath.n_calls == model.result_.n_calls
    # The label, 8 samples, 2 rounds of 1, and one call for each model but the baseline that the
    # solver judged: the baseline led a round.
    n_judged = sum(row.name.endswith(", by the solver") for row in model.result_.trials)
    assert model.result_.trials[-1].n_calls == 60 * (1 + 8 + 2 + n_judged - 1) + 3


def test_cross_validation_asks_no_more_than_a_single_split(linear):
    split = regressor().fit(DATA.x, DATA.y, validation=0.2)
    # All calls count. Averages and shrunk predictions, one call each, depend on what is found.
    assert linear.result_.n_calls <= 1.15 * split.result_.n_calls


def test_a_second_fit_with_another_estimator_does_not_ask_about_labels_again(tmp_path):
    first, second, again = (
        regressor(Oracle(DOMAIN.problem, store=tmp_path / "answers"), estimator)
        for estimator in (None, Ridge(), None)
    )
    for model in (first, second, again):
        model.fit(DATA.x[:30], DATA.y[:30])
    assert second.result_.n_calls < first.result_.n_calls
    assert again.result_.n_calls <= 40 + 2 * len(again.result_.changes)  # they verify the store
    np.testing.assert_array_equal(again.predict(TEST.x), first.predict(TEST.x))


def test_a_label_that_is_always_the_same_does_not_hold_up_the_others():
    y = np.column_stack([DATA.y[:, :-1], np.full(len(DATA.y), 0.7)])
    model = DecisionFocusedRegressor(DOMAIN.problem, n_rounds=1).fit(DATA.x, y)
    assert model.result_.gain.mean > 0


def test_the_best_model_is_kept_alone_where_its_average_with_others_is_worse():
    domain = shortest_path(3, sizes=(60, 1, 1), grid=(4, 4))
    part = domain.splits.train
    worse = DecisionRanking(temperature=100.0)
    families = (DecisionHinges(squared_error=1.0), worse)
    model = DecisionFocusedRegressor(domain.problem, families=families).fit(part.x, part.y)
    names = [row.name for row in model.result_.trials]
    assert any(name.startswith("average of") for name in names)
    assert model.result_.selected_name == str(families[0])
    assert len(set(names[-2:])) == 2  # the solver judges it once


def test_features_that_the_model_cannot_take_cost_hardly_any_calls():
    problem = CountedPath(DOMAIN.problem.grid)
    CountedPath.n_calls = 0
    x = DATA.x.copy()
    x[5, 0] = np.nan
    with pytest.raises(InvalidInputError, match="must be finite"):
        DecisionFocusedRegressor(problem).fit(x, DATA.y)
    assert CountedPath.n_calls < 100  # affinity, and three instances that tell what a call costs


def test_verbose_says_what_it_will_cost(capsys, monkeypatch):
    logger = logging.getLogger("lodl")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "propagate", False)  # as if nobody had configured logging
    regressor(families=(), n_rounds=0, verbose=True).fit(DATA.x[:20], DATA.y[:20])
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("Up to ")
    squared_error()
    assert capsys.readouterr().err == ""  # it was for one `fit`


def test_where_nothing_can_be_gained_squared_error_is_kept():
    x = np.random.default_rng(0).normal(size=(40, 3))
    y = x @ np.random.default_rng(1).normal(size=(3, 40)) + 5  # exactly linear
    model = regressor(estimator=Ridge(1e-9)).fit(x, y)
    assert model.result_.selected_name == "squared error"
    assert "Keep squared error: no clear gain here." in model.summary()


def test_what_cannot_be_predicted_is_drawn_to_the_mean():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 30)), rng.normal([1.5, 0, 0, 0, 0], size=(60, 5))
    model = regressor(TopK(1), Ridge(), families=(), n_rounds=0).fit(x, y)
    assert model.result_.shrinkage > 0
    assert "of the way to the mean" in model.result_.selected_name
    spread = np.std(model.predict(x) - y.mean(axis=0))
    assert spread < np.std(Ridge().fit(x, y).predict(x) - y.mean(axis=0))


def test_one_model_is_kept_without_an_ensemble():
    model = regressor(ensemble=False).fit(DATA.x, DATA.y)
    assert len(model.predictors_) == 1
    assert "average" not in model.result_.selected_name


def test_an_objective_with_a_kink_gets_a_family_that_sees_regrets_and_shifted_predictions():
    domain = newsvendor(0, sizes=(60, 1, 400))
    part, test = domain.splits.train, domain.splits.test
    oracle = Oracle(domain.problem, progress=False)
    model = DecisionFocusedRegressor(oracle, Ridge()).fit(part.x, part.y)
    names = [row.name for row in model.result_.trials]
    assert names[:2] == ["squared error", "DirectedWeightedMAE(squares=True)"]
    assert [name for name in names if "Decision" in name] == []
    assert "squared error, shifted by the learned loss" in names
    assert oracle.n_calls <= 17 * 60 + 18
    assert model.loss_.provenance["n_samples"] == 10
    assert model.loss_.provenance["scale"]["max"] < 0.5 * part.y.std(axis=0).max()
    corrected = next(row for row in model.result_.trials if row.name.startswith("squared error, "))
    is_better = corrected.regret < model.result_.mean_baseline
    assert len(model.result_.baseline_shift) == (20 if is_better else 0)
    plain = regret(oracle, model.plain_.predict(test.x), test.y).mean()
    assert model.regret(test.x, test.y).mean() < 0.95 * plain


def test_a_loss_that_predicts_regrets_well_needs_four_samples():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = x @ [[1.0], [2.0]] + rng.normal(size=(60, 1))
    model = DecisionFocusedRegressor(SHOP).fit(x, y)
    assert model.result_.trials[0].n_calls <= (4 + 1 + 1) * 60 + 18  # samples, label, baseline
    assert np.mean(model.predict(x) > y) > 0.8
    assert model.result_.mean_selected < 0.6 * model.result_.mean_baseline


def test_shifted_predictions_are_saved(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(80, 30)), rng.normal(size=(80, 2))
    model = DecisionFocusedRegressor(short_of_stock()).fit(x, y + x[:, :2])
    assert "shifted" in model.result_.selected_name
    shift = np.array(model.result_.shift)
    means = np.mean([one.predict(x) for one in model.predictors_], axis=0)
    np.testing.assert_allclose(model.predict(x), means + shift)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        lodl.load_model(tmp_path / "model", model.problem).predict(x), model.predict(x)
    )


def short_of_stock():
    return lodl.problem(
        lambda y_hat: y_hat, lambda z, y: float(np.maximum(z - y, 19 * (y - z)).sum()), sense="min"
    )


def test_if_features_say_nothing_a_shifted_mean_is_selected_and_no_model_is_praised(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(80, 3)), rng.normal(size=(80, 2))
    model = DecisionFocusedRegressor(short_of_stock()).fit(x, y)
    result, shop = model.result_, model.problem
    assert result.verdict.startswith("The features do not help: a constant prediction decides no ")
    assert result.gain.low > 0  # of which squared error would give the credit to a loss
    constant = y.mean(axis=0) + np.array(result.shift)
    np.testing.assert_allclose(model.predict(x[:2]), np.tile(constant, (2, 1)))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        lodl.load_model(tmp_path / "model", shop).predict(x), model.predict(x)
    )


def test_items_with_contexts_have_one_model():
    domain = item_knapsack(0, sizes=(30, 10, 20))
    part, test = domain.splits.train_and_validation, domain.splits.test
    module = mlp(part.x.shape[-1], part.y.shape[1:], hidden=(), n_items=part.x.shape[1])
    for estimator in (replace(TORCH, module=module), Ridge()):
        model = regressor(domain.problem, estimator).fit(part.x, part.y, context=part.context)
        assert model.predict(test.x).shape == test.y.shape
        assert model.score(test.x, test.y, context=test.context) > 0.5
        assert len(model.decide(test.x, context=test.context)) == 20


@pytest.mark.parametrize("layers", [(), (nn.Dropout(0.1),)], ids=["at once", "one by one"])
def test_folds_of_any_module_can_be_trained(layers):
    module = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), *layers, nn.Linear(8, 40))
    learner = TorchLearner(module, n_initialisations=1, settings=TORCH.settings)
    model = regressor(estimator=learner, families=FAMILIES[:1], n_rounds=1).fit(DATA.x, DATA.y)
    assert model.score(TEST.x, TEST.y) > 0.5


def test_given_validation_instances_are_not_trained_on():
    train, validation = DOMAIN.splits.train, DOMAIN.splits.validation
    arguments = {"families": (), "n_rounds": 0, "estimator": Ridge()}
    model = regressor(**arguments).fit(train.x, train.y, validation=(validation.x, validation.y))
    expected = Ridge().fit(train.x, train.y).predict(TEST.x)
    mean = train.y.mean(axis=0)
    np.testing.assert_allclose(
        model.predict(TEST.x), mean + (1 - model.result_.shrinkage) * (expected - mean)
    )


def test_a_budget_of_calls_is_kept():
    model = regressor(max_calls=60 * 8).fit(DATA.x, DATA.y)
    assert model.result_.n_calls <= 60 * 8
    assert max(row.round for row in model.result_.trials) < 2
    context = [None] * 60  # so that decisions are not shared
    model = regressor(max_calls=700).fit(DATA.x, DATA.y, context=context)
    assert model.result_.n_calls <= 700
    with pytest.raises(InvalidInputError, match="`max_calls` must be at least 78 for 60 instances"):
        regressor(max_calls=70).fit(DATA.x, DATA.y, context=context)


def test_when_time_is_up_no_further_model_is_tried():
    model = regressor(max_seconds=0).fit(DATA.x, DATA.y)
    assert model.result_.selected_name == "squared error"
    assert len(model.result_.trials) == 1


def test_models_of_all_folds_are_averaged_and_linear_ones_are_one(linear):
    ridge = regressor(estimator=Ridge()).fit(DATA.x, DATA.y)
    assert len(linear.predictors_) == len(ridge.predictors_) == 1
    assert ridge.predictors_[0].models[0].coef_.shape == (DATA.y.shape[1], DATA.x.shape[1])
    scaled = make_pipeline(StandardScaler(), Ridge())
    other = regressor(estimator=scaled, families=FAMILIES[:1], n_rounds=1).fit(DATA.x, DATA.y)
    assert len(other.predictors_) >= 5
    assert len(other.predictors_) % 5 == 0


_ESTIMATORS = [
    LinearRegression(),
    Ridge(0.3),
    RidgeCV(),
    Lasso(0.01),
    make_pipeline(StandardScaler(), Ridge()),
    MultiOutputRegressor(HuberRegressor()),
    DecisionTreeRegressor(max_depth=3, random_state=0),
    RandomForestRegressor(n_estimators=5, random_state=0),
    GradientBoostingRegressor(n_estimators=5, random_state=0),
    XGBRegressor(n_estimators=30, max_depth=2),
    LGBMRegressor(n_estimators=30, num_leaves=4, verbose=-1),
    CatBoostRegressor(n_estimators=30, depth=2, verbose=False, allow_writing_files=False),
    CatBoostRegressor(
        n_estimators=30, depth=2, loss_function="MultiRMSE", verbose=0, allow_writing_files=False
    ),
]


@pytest.mark.parametrize("estimator", _ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("n_labels", [1, 3])
def test_keeping_squared_error_returns_the_users_own_model_to_the_bit(
    estimator, n_labels, monkeypatch, tmp_path
):
    if n_labels == 1 and getattr(estimator, "get_param", lambda _: None)("loss_function"):
        pytest.skip("`MultiRMSE` takes several labels.")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), rng.gamma(1.0, size=(60, n_labels))
    problem = TopK(1)
    monkeypatch.setattr("lodl.learning._fit.select", lambda _, baseline, *__, **___: baseline)
    model = DecisionFocusedRegressor(problem, estimator, families=(), n_rounds=0, n_samples=4)
    model.fit(x, y)
    assert model.result_.selected_name.startswith("squared error")
    tags = get_tags(estimator).target_tags
    if tags.multi_output and (n_labels > 1 or not tags.single_output):
        expected = clone(estimator).fit(x, y).predict(x)
    else:
        expected = np.column_stack([clone(estimator).fit(x, column).predict(x) for column in y.T])
    np.testing.assert_array_equal(model.predict(x), expected)
    np.testing.assert_array_equal(model.plain_.predict(x), expected)
    if type(estimator).__module__.startswith("sklearn"):
        return
    loaded = lodl.load_model(model.save(tmp_path / "model"), problem)
    np.testing.assert_array_equal(loaded.predict(x), expected)
    np.testing.assert_array_equal(loaded.plain_.predict(x), expected)
    np.testing.assert_array_equal(loaded.baseline_.predict(x), model.baseline_.predict(x))


def test_the_baseline_is_kept_to_compare_with(model):
    y_hat = model.baseline_.predict(TEST.x)
    before = regret(DOMAIN.problem, y_hat, TEST.y).mean()
    assert model.regret(TEST.x, TEST.y).mean() < before


def test_it_says_before_it_starts_what_it_will_cost(caplog):
    with caplog.at_level(logging.INFO, logger="lodl"):
        model = squared_error(verbose=True)
    calls = "Up to 900 solver calls, 15 for each of 60 instances, and a few dozen checks"
    assert caplog.messages[0].startswith(f"{calls}: in batches, in less than ")
    assert caplog.messages[-1].endswith(model.result_.verdict)


def test_a_plan_says_the_same_for_a_handful_of_calls():
    CountedPath.n_calls = 0
    model = regressor(CountedPath(DOMAIN.problem.grid))
    plan = model.plan(DATA.x, DATA.y)
    assert plan.startswith("Up to 720 solver calls, 12 for each of 60 instances, and a few dozen ")
    assert 0 < CountedPath.n_calls <= 30
    assert not hasattr(model, "result_")


def test_families_suit_the_kind_of_objective():
    kinked = Situation(ObjectiveKind.KINKED, shares=True, n_instances=100)
    assert kinked.families() == (DirectedWeightedMAE(squares=True),)
    *decisions, last = replace(kinked, kind=ObjectiveKind.SMOOTH).families()
    assert last == DirectedWeightedMAE(squares=True)
    affine = replace(kinked, kind=ObjectiveKind.AFFINE)
    assert all(family.uses_slopes for family in (*decisions, *affine.families()))
    families = (DirectedWeightedMSE(), Quadratic())
    assert [kinked.is_pooled(family) for family in families] == [True, False]
    assert not affine.is_pooled(DirectedWeightedMSE())


@pytest.mark.parametrize(
    ("kind", "shares", "n_instances", "n_samples", "n_rounds"),
    [("affine", True, 100, 0, 7), ("affine", False, 100, 16, 4), ("affine", False, 500, 6, 4)]
    + [("smooth", shares, 100, 16, 4) for shares in (False, True)]
    + [("kinked", shares, 100, 10, 0) for shares in (False, True)],
)
def test_instances_that_share_their_decisions_are_asked_less(
    kind, shares, n_instances, n_samples, n_rounds
):
    situation = Situation(ObjectiveKind(kind), shares, n_instances)
    schedule = situation.schedule(Schedule(), situation.families())
    assert (schedule.n_samples, schedule.n_rounds) == (n_samples, n_rounds)
    assert schedule.n_per_round == (1 if situation.is_shared else 2)
    assert schedule.n_first == (4 if kind == "kinked" else None)
    assert situation.schedule(Schedule(), [Quadratic()]).n_samples == 50
    fitted = situation.schedule(Schedule(), [DirectedWeightedMSE()])
    assert fitted.n_samples == (50 if kind == "affine" else 10)
    given = situation.schedule(Schedule(7, 0), situation.families())
    assert (given.n_samples, given.n_rounds) == (7, 0)


def test_many_instances_that_share_their_decisions_need_fewer_losses():
    few = Situation(ObjectiveKind.AFFINE, shares=True, n_instances=499)
    assert set(replace(few, n_instances=500).families()) < set(few.families())


class BrokenPath(ShortestPath):
    def objective_many(self, zs, y, context=None):
        values = super().objective_many(zs, y, context)
        return np.where(values > 1.5 * y.mean() * 8, np.nan, values)  # no cost for long paths


def test_calls_that_fail_are_left_out_if_told_so():
    problem = BrokenPath(DOMAIN.problem.grid)
    model = regressor(Oracle(problem, on_failure="skip"), Ridge()).fit(DATA.x, DATA.y)
    assert np.isfinite(model.result_.gain.mean)
    with pytest.raises(OracleError, match="instance"):
        regressor(problem, Ridge()).fit(DATA.x, DATA.y)


def test_missing_features_are_left_to_estimators_that_take_them():
    x = np.where(np.random.default_rng(0).random(DATA.x.shape) < 0.1, np.nan, DATA.x)
    trees = DecisionTreeRegressor(max_depth=3, random_state=0)
    model = regressor(estimator=trees, families=FAMILIES[:1], n_rounds=1).fit(x, DATA.y)
    assert np.isfinite(model.predict(x)).all()
    with pytest.raises(InvalidInputError, match="`X` must be finite"):
        regressor().fit(x, DATA.y)


@pytest.mark.parametrize(
    ("arguments", "data", "match"),
    [
        (
            {"families": DecisionHinges(margin=1.0)},
            {},
            r"sequence of families, got one: write \[DecisionHinges\(margin=1\.0\)\]\.",
        ),
        ({}, {"validation": 1}, "`validation`, if a number of folds, must be from 2"),
        ({}, {"validation": 1.5}, "`validation` must be a number of folds, a share"),
        ({}, {"validation": (1,)}, "`validation` must be `\\(X, Y\\)`"),
        ({}, {"X": DATA.x[:4]}, "`X` must have one row per instance \\(60, as `Y` has\\), got 4"),
        ({}, {"groups": [1, 2]}, "`groups` must have one entry per instance \\(60\\), got 2"),
        ({"problem": ShortestPath}, {}, "`problem` must be an instance"),
        ({"families": (WeightedMSE(), WeightedMSE())}, {}, "`families` must differ"),
        ({"n_rounds": -1}, {}, "`n_rounds` must be a whole number of at least 0"),
        ({"random_state": -1}, {}, "`random_state` must be a whole number"),
    ],
)
def test_bad_arguments_are_named(arguments, data, match):
    with pytest.raises(InvalidInputError, match=match):
        regressor(**arguments).fit(**({"X": DATA.x, "Y": DATA.y} | data))


class Moody(TopK):
    is_broken = False

    def solve_many(self, y_hats, context=None):
        if Moody.is_broken:
            raise ValueError("not today")
        return super().solve_many(y_hats, context)


@pytest.mark.parametrize(
    ("stage", "error", "match"),
    [
        ("data", InvalidInputError, "`context`"),
        ("solver", OracleError, "not today"),
        ("last model", ValueError, "no last model"),
    ],
)
def test_a_fit_that_fails_leaves_the_fitted_model_as_it_was(stage, error, match, monkeypatch):
    rng = np.random.default_rng(0)
    x, y = pd.DataFrame(rng.normal(size=(20, 2))), rng.normal(size=(20, 3))
    labels = pd.DataFrame(y, columns=["north", "south", "west"])
    quick = {"families": (DecisionHinges(),), "n_rounds": 0, "n_samples": 4, "ensemble": False}
    model = DecisionFocusedRegressor(Moody(1), Ridge(), **quick).fit(x, labels, validation=2)
    before = dict(vars(model))
    if stage == "last model":
        monkeypatch.setattr(Trainer, "final", Mock(side_effect=ValueError("no last model")))
    monkeypatch.setattr(Moody, "is_broken", stage == "solver")
    with pytest.raises(error, match=match):
        model.fit(x.to_numpy(), 2 * y, context=[0] if stage == "data" else None)
    assert vars(model).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(model).items())


def test_a_model_must_be_fitted_first():
    for use in (regressor().predict, regressor().decide):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            use(TEST.x)


def test_known_decisions_compare_models_if_calls_cannot():
    problem = CountedPath(DOMAIN.problem.grid)
    CountedPath.n_calls = 0
    options = {"families": FAMILIES, "n_samples": 3, "n_rounds": 1}
    free = DecisionFocusedRegressor(DOMAIN.problem, Ridge(), **options).fit(DATA.x, DATA.y)
    limited = DecisionFocusedRegressor(problem, Ridge(), max_calls=60 * 9, **options)
    limited.fit(DATA.x, DATA.y)
    # The label, 3 samples, a round of 1, and the selected model; the baseline led the round.
    n_shown = 2 * len(limited.result_.changes)
    n_first = 3 * 2  # a first look at the problem repeats a call and takes a fourth sample
    assert limited.result_.n_calls == 60 * (1 + 3 + 1 + 1) + n_first + n_shown
    assert limited.result_.n_calls == CountedPath.n_calls
    assert limited.result_.selected_name == free.result_.selected_name
    assert limited.result_.mean_selected == pytest.approx(free.result_.mean_selected)
    np.testing.assert_array_equal(limited.predict(TEST.x), free.predict(TEST.x))


def test_four_calls_per_instance_are_enough_if_decisions_are_shared():
    model = DecisionFocusedRegressor(DOMAIN.problem, max_calls=4 * 60 + 12).fit(DATA.x, DATA.y)
    assert model.result_.n_calls <= 4 * 60 + 12
    assert model.result_.gain.mean > 0
    assert model.result_.trials[model.result_.selected].name.endswith(", by the solver")


@pytest.mark.parametrize("n_each", [1, 2, 5])
@pytest.mark.parametrize("domain", [newsvendor(sizes=(40, 1, 1)), item_knapsack(sizes=(40, 1, 1))])
def test_any_budget_is_kept_even_if_the_solver_cannot_compare_models(domain, n_each, caplog):
    part, limit = domain.splits.train, 40 * n_each + 20
    model = DecisionFocusedRegressor(domain.problem, max_calls=limit)
    model.fit(part.x, part.y, context=part.context)
    assert model.result_.n_calls <= limit
    assert ("5 calls for each" in caplog.text) == (n_each < 3)
    if n_each == 5:  # two samples, and the solver compares the selected model with the baseline
        names = [trial.name for trial in model.result_.trials]
        assert any(name.endswith(", by the solver") for name in names)


def test_three_calls_per_instance_teach_the_costs_of_shortage_and_excess():
    domain = newsvendor(1003, sizes=(100, 1, 200))
    part, test = domain.splits.train, domain.splits.test
    model = DecisionFocusedRegressor(domain.problem, max_calls=3 * 100 + 20).fit(part.x, part.y)
    plain = lodl.evaluation.regret(domain.problem, model.plain_.predict(test.x), test.y)
    assert model.regret(test.x, test.y).mean() < 0.95 * plain.mean()


def test_instances_share_their_decisions_where_they_can():
    quick = {"families": FAMILIES[:1], "n_rounds": 0}
    shared = regressor(**quick).fit(DATA.x, DATA.y)
    assert shared.loss_.provenance["shared"]
    own = regressor(**quick).fit(DATA.x, DATA.y, context=[None] * len(DATA.y))
    assert "shared" not in own.loss_.provenance


class Greedy(TopK):
    """Takes the second best item."""

    def solve_many(self, y_hats, context=None):
        return np.eye(y_hats.shape[1])[np.argsort(y_hats, axis=1)[:, -2]]


@pytest.mark.parametrize("n_rounds", [0, 1])
def test_the_gain_is_by_the_solver_if_known_decisions_compared(n_rounds):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    y = (x @ rng.normal(size=(3, 6))) ** 3 + rng.normal(size=(40, 6))
    model = DecisionFocusedRegressor(
        Greedy(1), families=FAMILIES, n_samples=3, n_rounds=n_rounds, max_calls=40 * 9
    ).fit(x, y)
    assert model.result_.gain.mean >= 0
    truth = regret(Greedy(1), model._out_of_fold, y)
    assert model.result_.mean_selected == pytest.approx(truth.mean())


class Mean(WeightedMSE):
    """A family of a user's own that asks for slopes."""

    uses_slopes = True


def test_a_family_of_ones_own_that_uses_slopes_has_own_decisions():
    model = DecisionFocusedRegressor(DOMAIN.problem, families=[Mean()]).fit(DATA.x, DATA.y)
    assert np.isfinite(model.result_.mean_selected)


class FailsOnOther(LinearLearner):
    """Trains 2-stage, and nothing else."""

    def train(self, x, loss, *arguments, **options):
        if not is_squared_error(loss):
            raise ValueError("targets are out of range")
        return super().train(x, loss, *arguments, **options)


def test_a_loss_that_the_estimator_cannot_be_trained_on_is_left_out(caplog):
    model = regressor(estimator=FailsOnOther()).fit(DATA.x, DATA.y)
    assert model.result_.selected_name.startswith("squared error")
    assert "is left out, because the estimator could not be trained on it" in caplog.text
    assert "ValueError: targets are out of range" in caplog.text


def test_where_nothing_can_be_predicted_the_mean_is_tried():
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(60, 8)), rng.gamma(1.0, size=(60, 6))
    model = DecisionFocusedRegressor(TopK(1), families=(DecisionHinges(),), n_samples=5).fit(x, y)
    constant = [
        row for row in model.result_.trials if row.name.endswith("100% of the way to the mean")
    ]
    assert constant
    assert model.result_.shrinkage == 1
    assert model.summary().startswith("The features do not help: the mean label decides no worse")
    np.testing.assert_allclose(model.predict(x[:2]), np.tile(y.mean(axis=0), (2, 1)))


def test_where_labels_can_be_predicted_the_mean_is_not_asked_about(model):
    assert not any(row.name.endswith("100% of the way to the mean") for row in model.result_.trials)
