from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from lodl.domains import newsvendor, shortest_path
from lodl.learning import DecisionFocusedRegressor
from lodl.training.torch import TrainingSettings
from lodl_benchmarks.rounds import METHODS, TASKS, Run, plan, run, tables
from lodl_benchmarks.rounds._loop import Predictions, average
from lodl_benchmarks.runner import Trial

pytestmark = pytest.mark.slow

BRIEF = TrainingSettings(n_steps=20, batch_size=8)
SMALL = {
    "path": replace(
        TASKS["path"],
        build=partial(shortest_path, sizes=(12, 6, 20), grid=(3, 3)),
        training=BRIEF,
        n_samples=4,
        n_rounds=1,
    ),
    "newsvendor": replace(
        TASKS["newsvendor"],
        build=partial(newsvendor, sizes=(12, 6, 20), n_products=3),
        training=BRIEF,
        n_samples=4,
        n_rounds=1,
    ),
}


def run_small(trials, out):
    return run(trials, out, tasks=SMALL, progress=False)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return run_small(plan(["path"], 1), tmp_path_factory.mktemp("rounds"))


def test_every_method_of_a_task_has_a_row(rows):
    assert {row["method"] for row in rows} == set(SMALL["path"].methods)
    assert all(row["test"][0] >= 0 for row in rows)


def test_calls_include_those_at_labels_and_those_that_choose(rows):
    calls = {row["method"]: row["oracle_calls"] for row in rows}
    at_labels = 18 * (1 + 4)
    assert calls["2-stage"] == 0
    assert calls["DecisionHinges, labels only"] == at_labels
    assert calls["DecisionHinges, rounds"] == at_labels + 18 * (4 + 1)
    assert calls["DecisionRanking, rounds"] == at_labels + 18 * (4 + 1) + 3 * 6


def test_the_learner_predicts_validation_instances_that_it_held_out(tmp_path):
    domain = SMALL["path"].build(1)
    outcome = METHODS["DecisionFocusedRegressor"].run(Run(SMALL["path"], domain, 1, tmp_path))
    part = domain.splits.train_and_validation
    model = DecisionFocusedRegressor(domain.problem, random_state=1).fit(part.x, part.y)
    y_hat = outcome.y_hat
    found = np.concatenate([y_hat.train, y_hat.validation])
    assert np.array_equal(found, model._out_of_fold)
    assert not np.allclose(found, model.predict(part.x))
    assert np.array_equal(y_hat.test, model.predict(domain.splits.test.x))
    assert outcome.oracle_calls == model.result_.trials[-1].n_calls


def test_calls_of_spo_plus_are_those_of_one_model(rows):
    (row,) = (row for row in rows if row["method"] == "SPO+")
    assert row["oracle_calls"] == 12 + 20 * 8
    n_looks = 6 * (1 + 5)  # labels, then at 0, 5, 10, 15 and 20 steps
    assert row["validation_looks"] == n_looks
    # Three models and two learning rates; labels are asked once.
    assert row["calls_of_all_models"] == 12 + 6 + 6 * (20 * 8 + 5 * 6)


def test_an_average_is_that_of_the_predictions_of_every_split():
    one, other = (Predictions(*np.full((3, 2, 4), value)) for value in (1.0, 3.0))
    mean = average([one, other])
    assert np.array_equal([mean.train, mean.validation, mean.test], np.full((3, 2, 4), 2.0))


def test_rows_that_are_there_are_not_computed_again(tmp_path):
    trials = [Trial("path", "2-stage", 1), Trial("path", "2-stage", 2)]
    first = run_small(trials[:1], tmp_path)
    assert run_small(trials, tmp_path)[0] == first[0]
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 2


def test_other_settings_of_a_task_make_another_row(tmp_path):
    trials = [Trial("path", "2-stage", 1)]
    run_small(trials, tmp_path)
    longer = replace(SMALL["path"], training=replace(BRIEF, n_steps=21))
    run(trials, tmp_path, tasks={"path": longer}, progress=False)
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 2


def test_families_that_see_regrets_only_stand_beside_decisions_where_the_objective_has_kinks():
    assert "ConvexDirectedQuadratic, 50" in TASKS["newsvendor"].methods
    assert "SPO+" not in TASKS["newsvendor"].methods
    assert {name for task in TASKS.values() for name in task.methods} == set(METHODS)


def test_the_budget_of_every_goal_covers_the_rounds():
    for name, task in TASKS.items():
        if task.max_calls is not None:
            sizes = task.build(1).splits
            n = len(sizes.train.y) + len(sizes.validation.y)
            assert n * (1 + task.n_samples + 4 * task.n_rounds + 1) <= task.max_calls, name


def test_a_goal_is_reached_by_quality_and_calls_both():
    def goals(test, calls):
        row = {
            "domain": "path",
            "method": "DecisionHinges, rounds",
            "seed": 1,
            "test": [test],
            "validation": [test],
            "oracle_calls": calls,
            "validation_looks": 0,
            "seconds_sampling": 0.0,
            "seconds_training": 0.0,
        }
        return tables([row])[0].rows[0][-1].text

    assert goals(0.05, 9_000) == "yes"
    assert goals(0.05, 11_000) == "no"
    assert goals(0.06, 9_000) == "no"


def test_differences_are_to_2_stage_on_the_same_data(rows):
    (_, table) = tables(rows)
    by_method = {line[0].text: line for line in table.rows}
    difference = by_method["SPO+"][1].value - by_method["2-stage"][1].value
    assert by_method["SPO+"][2].text == f"{difference:+.4f}"
