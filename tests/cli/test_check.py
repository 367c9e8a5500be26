import re
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lodl
from lodl.cli._options import calls_solver

PROBLEM = """
import numpy as np
import lodl

class PickOne(lodl.Problem):
    sense = "max"
    def solve(self, y_hat, context):
        return np.eye(len(y_hat))[np.argmax(y_hat)]
    def objective(self, z, y, context):
        return z @ y

picky = lodl.problem(np.argmax, lambda z, y: y[z], sense="max")
class Sized(PickOne):
    def __init__(self, size):
        self.size = size

class Bad(lodl.Problem):
    sense = "max"
    def solve(self, y_hat, context):
        return y_hat

not_a_problem = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(PROBLEM)
    np.save(tmp_path / "y.npy", np.random.default_rng(0).random((3, 4)))
    for suffix in ("npy", "npz"):
        (tmp_path / f"torn.{suffix}").write_bytes(b"PK\x03\x04 and no more")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    sys.modules.pop("mine", None)


@pytest.fixture
def check(folder, run_lodl):
    """Runs `lodl check ...` and returns its exit code, what it said, and its errors."""

    def run(problem="mine:PickOne", **options):
        flags = {"labels": "y.npy", "n-jobs": 1} | options
        arguments = [text for name, value in flags.items() for text in (f"--{name}", str(value))]
        return run_lodl("check", problem, *arguments)

    return run


@pytest.mark.parametrize("problem", ["mine:PickOne", "mine:picky"])
def test_a_problem_that_keeps_its_contract_is_ok(check, problem):
    code, said, err = check(problem)
    assert code == 0, err
    assert "is ok on 3 instances" in said


def test_tables_and_ids_are_read_like_arrays(folder, check):
    table = pd.DataFrame(np.load(folder / "y.npy"), columns=list("abcd"))
    table.assign(town=["Ulm", "Bern", "Wien"]).to_csv(folder / "y.csv", index=False)
    code, said, err = check(labels="y.csv", id="town")
    assert code == 0, err
    assert "PickOne is ok on 3 instances" in said


@pytest.mark.parametrize(
    ("problem", "options", "message"),
    [
        ("mine", {}, "must be given as FILE.py:PROBLEM or MODULE:PROBLEM, got 'mine'"),
        ("mine:Missing", {}, "mine has no 'Missing'"),
        ("yours:PickOne", {}, "no module 'yours' in the current folder or on PYTHONPATH"),
        (
            ".mine:PickOne",
            {},
            "must be given as FILE.py:PROBLEM or MODULE:PROBLEM, got '.mine:PickOne'",
        ),
        ("mine:Bad", {}, "Bad is not complete: it lacks objective"),
        ("mine:Sized", {}, r"Sized\(\) failed: .* 'size'\. Create an instance"),
        ("mine:PickOn", {}, r"mine has no 'PickOn'\. Did you mean mine:PickOne\?"),
        ("mine:nope", {}, r"mine has no 'nope'\.$"),  # not `np`, which is there
        ("mine:not_a_problem", {}, "must be a lodl.Problem or a subclass of it, got int"),
        ("mine:PickOne", {"labels": "absent.npy"}, "There is no file absent.npy\\."),
        ("mine:PickOne", {"labels": "."}, "labels in . cannot be read: the name of the file must"),
        ("mine:PickOne", {"n-jobs": 0}, "--n-jobs must be .*a whole number other than 0"),
        (
            "mine:PickOne",
            {"labels": "mine.py"},
            "labels in mine.py cannot be read: the name",
        ),
        ("mine:PickOne", {"labels": "torn.npy"}, "labels in torn.npy cannot be read as .npy"),
        ("mine:PickOne", {"labels": "torn.npz"}, "labels in torn.npz cannot be read as .npz"),
        ("mine:PickOne", {"on-failure": "stop"}, '--on-failure must be "raise" or "skip"'),
        (
            "mine:PickOne",
            {"max-failure-rate": 2},
            "--max-failure-rate must be a number of at least 0 and at",
        ),
        ("mine:PickOne", {"timeout": -1}, "--timeout must be"),
    ],
)
def test_bad_input_is_one_line_and_an_exit_code(check, problem, options, message):
    code, _, err = check(problem, **options)
    assert code == (1 if "labels" in options else 2)  # a file, or a value
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert re.search(message, err)


def test_a_missing_option_is_a_usage_error(folder, run_lodl):
    code, _, err = run_lodl("check", "mine:PickOne")
    assert code == 2
    assert "--labels" in err


def test_the_options_of_solver_calls_make_the_oracle_of_a_command(folder):
    given: dict[str, Any] = {}

    @calls_solver()
    def keep(oracle: lodl.Oracle, problem: str) -> None:
        given.update(oracle=oracle, problem=problem)

    limits = {"timeout": 3.0, "on_failure": "skip", "max_failure_rate": 0.2}
    keep(problem="mine:PickOne", store="answers", n_jobs=2, **limits)
    oracle = given["oracle"]
    assert vars(oracle.options) == limits
    assert repr(oracle) == f"Oracle(PickOne, store='{folder / 'answers'}', n_jobs=2)"
    assert given["problem"] == "mine:PickOne"


def test_a_store_says_how_far_it_is(folder, run_lodl):
    y = np.load(folder / "y.npy")
    lodl.Oracle(lodl.domains.TopK(1), store="answers").sample(y, n_samples=50)
    code, out, _ = run_lodl("store", "answers")
    assert code == 0
    assert "153 answers, 0 of them failed calls" in out
    assert "complete" in out


def test_a_place_without_a_store_is_an_error(folder, run_lodl):
    code, _, err = run_lodl("store", "nowhere")
    assert code == 1
    assert "There is no store at" in err


@pytest.mark.slow
def test_a_model_in_place_of_a_store_is_named_as_such(folder, run_lodl):
    (folder / "model").mkdir()
    (folder / "model" / "checksums.json").write_text("{}")
    code, _, err = run_lodl("store", "model")
    assert code == 1
    assert "is a saved model, which" in err
    assert "Remove" not in err
