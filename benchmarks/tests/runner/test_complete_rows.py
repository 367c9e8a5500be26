import json
import os
from typing import Any

import pytest

from lodl_benchmarks.runner import Computation, RowsFile, complete_rows


def computation(calls, **identity):
    def measure():
        calls.append(identity)
        return {"value": len(calls)}

    return Computation(identity, measure)


def complete(out, computations, **options):
    return complete_rows(computations, out, description="test", progress=False, **options)


def test_rows_are_computed_once_and_returned_in_the_order_of_the_computations(tmp_path):
    calls: list[Any] = []
    one, other = (computation(calls, task="a", seed=seed) for seed in (1, 2))
    complete(tmp_path, [other])
    rows = complete(tmp_path, [one, other])
    assert [(row["seed"], row["value"]) for row in rows] == [(1, 2), (2, 1)]
    assert complete(tmp_path, [other, one]) == rows[::-1]
    assert len(calls) == 2


def test_a_row_is_known_by_all_values_of_its_identity_whatever_their_order(tmp_path):
    calls: list[Any] = []
    complete(tmp_path, [computation(calls, task="a", training={"rate": 0.1, "hidden": (3, 4)})])
    complete(tmp_path, [computation(calls, training={"hidden": [3, 4], "rate": 0.1}, task="a")])
    assert len(calls) == 1
    complete(tmp_path, [computation(calls, task="a", training={"rate": 0.1, "hidden": [3]})])
    assert len(calls) == 2


def test_further_values_of_a_row_do_not_matter(tmp_path):
    calls: list[Any] = []
    (row,) = complete(tmp_path, [computation(calls, task="a")])
    RowsFile(tmp_path / "rows.jsonl").append({**row, "task": "b", "surrogate": "of no use"})
    assert complete(tmp_path, [computation(calls, task="b")])[0]["surrogate"] == "of no use"
    assert len(calls) == 1


def test_of_several_rows_of_a_computation_the_last_one_counts(tmp_path):
    (row,) = complete(tmp_path, [computation([], task="a")])
    RowsFile(tmp_path / "rows.jsonl").append({**row, "value": 7})
    assert complete(tmp_path, [computation([], task="a")])[0]["value"] == 7


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_computations_run_in_as_many_processes_as_wanted(tmp_path, n_jobs):
    def process_id():  # local, so that workers get it by value
        return {"process": os.getpid()}

    computations = [Computation({"seed": i}, process_id) for i in range(4)]
    rows = complete(tmp_path, computations, n_jobs=n_jobs)
    assert ({row["process"] for row in rows} == {os.getpid()}) == (n_jobs == 1)


def test_rows_of_finished_computations_stay_when_one_fails(tmp_path):
    def fail():
        raise RuntimeError("no solution")

    with pytest.raises(RuntimeError, match="no solution"):
        complete(tmp_path, [computation([], task="a"), Computation({"task": "b"}, fail)])
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line)["task"] for line in lines] == ["a"]
