from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from lodl import DecisionHinges
from lodl.domains import item_knapsack, shortest_path
from lodl_benchmarks.learner import MODELS, TASKS, plan, run, tables

pytestmark = pytest.mark.slow

SMALL = {
    "path": replace(
        TASKS["path"], build=partial(shortest_path, sizes=(16, 4, 20), grid=(3, 3), degree=6)
    ),
    "item-knapsack": replace(
        TASKS["item-knapsack"], build=partial(item_knapsack, sizes=(16, 4, 20), n_items=4)
    ),
}
QUICK = {"families": (DecisionHinges(),), "n_samples": 4, "n_rounds": 1}


def run_small(out, models=("linear",)):
    trials = plan(list(SMALL), models, [1, 2])
    return run(trials, out, tasks=SMALL, options=QUICK, progress=False)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("learner")


@pytest.fixture(scope="module")
def rows(out):
    return run_small(out)


def test_a_row_compares_two_models_on_the_same_test_instances(rows):
    assert [(row["seed"], row["task"]) for row in rows] == [
        (seed, task) for seed in (1, 2) for task in SMALL
    ]
    for row in rows:
        assert row["difference"] == pytest.approx(row["learner"] - row["two_stage"])
        assert row["learner"] >= 0
        assert row["standard_error"] >= 0
        assert row["oracle_calls"] > 0


def test_what_has_a_row_is_not_computed_again(out, rows):
    assert run_small(out) == rows  # with their times


def test_tables_show_each_task_and_how_often_the_learner_is_better(rows):
    counts, table, choices = tables(rows, SMALL)
    assert [line[0].text for line in table.rows] == [task.title for task in SMALL.values()]
    n_tasks, *verdicts = (int(cell.text) for cell in counts.rows[0][1:])
    assert n_tasks == sum(verdicts[:3]) == len(SMALL)
    assert len(choices.rows) == len(rows)


def line_of(rows):
    _, table, _ = tables(rows, SMALL)
    return {name: cell.text for name, cell in zip(table.columns, table.rows[0], strict=True)}


def test_the_error_is_that_of_test_instances_or_the_larger_one_of_data_seeds(rows):
    path = [row | {"standard_error": 0.3, "difference": -0.1} for row in rows[:1]]
    alike = line_of([*path, path[0] | {"standard_error": 0.4, "seed": 2}])
    assert alike["difference"] == "-0.10 ± 0.25"
    assert alike["verdict"] == "open"
    apart = line_of([*path, path[0] | {"difference": -2.1, "seed": 2}])
    assert apart["difference"] == "-1.1 ± 1.0"


def test_a_gain_of_one_seed_or_one_standard_error_is_not_called_better(rows):
    path = [row | {"standard_error": 0.0011, "difference": -0.0012} for row in rows[:1]]
    assert line_of(path)["verdict"] == "open"
    clear = [path[0] | {"seed": seed, "standard_error": 1e-5} for seed in range(5)]
    assert line_of(clear)["verdict"] == "better"


def test_the_last_row_of_a_trial_counts(rows):
    again = [row | {"learner": 0.123, "difference": 0.0} for row in rows]
    assert line_of([*rows, *again])["learner"] == "0.1230"
    assert line_of([*rows, *again])["seeds"] == "2"


@pytest.mark.parametrize("name", MODELS)
def test_every_model_can_be_made_for_joint_features_and_for_items(name):
    for task in SMALL.values():
        data = task.build(1).splits.train
        model = MODELS[name](data)
        assert model is None or hasattr(model, "fit") or hasattr(model, "forward")


def test_every_task_has_enough_instances_to_judge_by():
    for task in TASKS.values():
        splits = task.build(1001).splits
        assert len(splits.test.y) >= 200
        assert np.isfinite(splits.train_and_validation.y).all()
