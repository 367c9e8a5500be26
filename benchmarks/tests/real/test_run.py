from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from lodl.cli._app import app
from lodl.errors import InvalidInputError
from lodl.problems import VectorisedProblem
from lodl_benchmarks.real import Split, plan, published_tables, run, semo, stored_rows, tables
from lodl_benchmarks.real._models import Fitted, PinballRegressor, make_model
from lodl_benchmarks.real._practice import corrected, folds, mean_label, plain, quantile, shifted
from lodl_benchmarks.real._spo_plus import _weights, spo_plus

PRACTICE = ("plain", "mean label", "shifted", "corrected")


class Order(VectorisedProblem):
    """Order what is predicted; a missing unit costs nine times one too many."""

    sense = "min"

    def solve_many(self, y_hats, context=None):
        return y_hats

    def objective_many(self, zs, y, context=None):
        return np.maximum(9 * (y - zs), zs - y).sum(axis=1)


@pytest.fixture(scope="module")
def orders():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    y = x @ rng.normal(size=(3, 2)) + rng.exponential(2, size=(600, 2))
    parts = x[:400], y[:400], x[400:], y[400:]
    return Split(Order(), *parts, levels=np.array([0.9, 0.9]))


def cost(split, outcome):
    return split.problem.objective_many(outcome.y_hat, split.y_test).mean()


@pytest.fixture(scope="module")
def ridge():
    return make_pipeline(StandardScaler(), RidgeCV())


def test_shifts_and_quantiles_find_the_level_of_the_costs(orders, ridge):
    best = shifted(orders, ridge)
    assert best.note == "shifted, 0.9"
    assert best.n_calls == 17 * 400
    direct = quantile(orders, ridge)
    assert direct.note.startswith("level 0.9,")
    for outcome in (best, direct, corrected(orders, ridge)):
        assert cost(orders, outcome) < 0.7 * cost(orders, plain(orders, ridge))
    assert (mean_label(orders, ridge).y_hat == orders.y_train.mean(axis=0)).all()


def test_trees_predict_quantiles_too(orders):
    trees = make_model("lightgbm", orders.x_train).set_params(n_estimators=20)
    assert cost(orders, quantile(orders, trees)) < cost(orders, plain(orders, trees))


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_a_linear_quantile_leaves_its_share_below(orders, level):
    model = PinballRegressor(level, alpha=1e-4).fit(orders.x_train, orders.y_train)
    below = (orders.y_train < model.predict(orders.x_train)).mean(axis=0)
    np.testing.assert_allclose(below, level, atol=0.03)


def test_weights_of_a_pipeline_give_its_predictions(orders, ridge):
    model = Fitted(ridge, orders.x_train, orders.y_train).model
    w = _weights(model, 3)
    np.testing.assert_allclose(orders.x_test @ w[:-1] + w[-1], model.predict(orders.x_test))


def test_spo_plus_is_no_worse_than_the_plain_model_where_that_is_wrong(data):
    split = semo(data / "semo_prices.csv.gz", data / "semo_tasks.json", "knapsack 60")
    ours, before = (method(split, make_model("linear", 0)) for method in (spo_plus, plain))
    value = [split.problem.solve_many(o.y_hat, None) * split.y_test for o in (ours, before)]
    assert value[0].sum() >= 0.98 * value[1].sum()
    assert ours.n_calls > 0


@pytest.mark.slow
def test_rows_have_paired_differences_and_are_not_computed_again(data, tmp_path):
    trials = plan(data, ["semo-knapsack-60", "reserve-crews"], ["item"], PRACTICE, 1)
    assert [(t.task, t.seed) for t in trials[::4]] == [
        ("semo-knapsack-60", 0),
        ("reserve-crews", 0),
        ("semo-knapsack-60", 1),
    ]
    rows = run(trials, tmp_path, progress=False)
    assert run(trials, tmp_path, progress=False) == rows  # with their times
    assert stored_rows(tmp_path) == sorted(rows, key=lambda row: row["seed"])
    assert stored_rows(tmp_path, choosing=True) == []
    first = {row["method"]: row for row in rows[:4]}
    for row in first.values():
        assert row["less_plain"] == pytest.approx(row["regret"] - first["plain"]["regret"])
    assert first["plain"]["error_plain"] == 0
    made = tables(rows)
    assert [table.caption for table in made] == [
        "SEMO, knapsack 60, time order",
        "SEMO, knapsack 60, 1 random splits",
        "reserve crews, time order",
    ]
    assert [line[1].text for line in made[0].rows] == list(PRACTICE)


def test_methods_are_planned_for_the_tasks_that_they_are_for(data):
    everything = ["quantile", "SPO+"]
    pairs = {
        (trial.task, trial.model, trial.method)
        for trial in plan(
            data, ["bikes", "semo-scheduling-1"], ["ridge", "item lightgbm"], everything, 0
        )
    }
    assert pairs == {("bikes", "ridge", "quantile"), ("semo-scheduling-1", "ridge", "SPO+")}


@pytest.mark.slow
def test_the_learner_is_a_method_like_others(data, tmp_path):
    trials = plan(data, ["restaurant"], ["ridge"], ["squared error", "learner"], 0)
    baseline, learner = run(trials, tmp_path, progress=False)
    assert learner["n_calls"] > 0
    assert learner["note"]
    assert baseline["regret"] > 0


def test_folds_are_blocks_if_instances_are_in_order(orders):
    for is_ordered in (True, False):
        parts = [part for _, part in folds(replace(orders, is_ordered=is_ordered))]
        assert is_ordered == all((np.diff(part) == 1).all() for part in parts)
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(400))


def test_published_figures_are_among_ours_the_least_last():
    row = {"task": "pjm-2014-12", "model": "ridge", "optimum": 0.0, "n_calls": 90, "n_train": 10}
    rows = [
        {**row, "method": method, "regret": regret, "cpu_seconds": 2.0}
        for method, regret in (("plain", 36.4), ("learner", 3.7))
    ]
    (table,) = published_tables(rows, ["pjm-2014-12", "semo-knapsack-60"])
    values = [line[1].value for line in table.rows]
    assert values == sorted(values, reverse=True)
    names = [line[0].text for line in table.rows]
    assert names.index("published: decision-focused, point prediction") < names.index("ridge: lodl")
    assert [cell.text for cell in table.rows[names.index("ridge: lodl")][4:]] == ["9.0", "2.0"]


@pytest.mark.parametrize(("command", "option"), [("pjm", "--load"), ("semo", "--days")])
def test_a_command_names_the_file_that_it_needs(tmp_path, command, option):
    with pytest.raises(InvalidInputError, match=r"must have the name .*\.csv\.gz, got x\.csv"):
        CliRunner().invoke(
            app, ["reproduce", command, option, str(tmp_path / "x.csv")], catch_exceptions=False
        )
