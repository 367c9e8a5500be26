import re
import sys

import numpy as np
import pandas as pd
import pytest

import lodl

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
def command(folder, run_lodl):
    """Runs `lodl ...` and returns its exit code, what it said, and its errors."""

    def run(*arguments):
        sys.modules.pop("mine", None)
        return run_lodl(*arguments)

    return run


@pytest.fixture
def learn(command):
    def run(problem="mine:PickOne", **options):
        defaults = {"labels": "y.npy", "out": "loss.safetensors", "n-samples": 50, "n-jobs": 1}
        flags = [
            text
            for name, value in (defaults | options).items()
            for text in (f"--{name}", str(value))
        ]
        return command("learn", problem, *flags)

    return run


@pytest.mark.parametrize("problem", ["mine:PickOne", "mine:picky"])
def test_it_writes_the_loss_that_python_would_learn(folder, learn, problem):
    code, out, err = learn(problem, family="DirectedWeightedMSE", scale=0.5, seed=3)
    assert code == 0, err
    assert "3 fitted" in out
    assert "Saved to loss.safetensors" in out
    y = np.load(folder / "y.npy")
    expected = lodl.learn_loss(
        lodl.problem(np.argmax, lambda z, y: y[z], sense="max"),
        y,
        family=lodl.DirectedWeightedMSE(),
        sampler=lodl.AllPerturbed(0.5),
        n_samples=50,
        random_state=3,
    )
    loss = lodl.load_loss(folder / "loss.safetensors", y=y)
    assert np.array_equal(loss.value(y + 0.1), expected.value(y + 0.1))


def test_tables_and_ids_are_read_like_arrays(folder, learn):
    y = np.load(folder / "y.npy")
    table = pd.DataFrame(y, columns=list("abcd")).assign(town=["Ulm", "Bern", "Wien"])
    table.to_csv(folder / "y.csv", index=False)
    code, _, err = learn(labels="y.csv", id="town", family="WeightedMSE", out="csv.loss")
    assert code == 0, err
    oracle = lodl.Oracle(lodl.problem(np.argmax, lambda z, y: y[z], sense="max"))
    instances = oracle.instances(y, keys=["Ulm", "Bern", "Wien"])
    expected = lodl.learn_loss(oracle, instances, family=lodl.WeightedMSE(), n_samples=50)
    loss = lodl.load_loss(folder / "csv.loss")
    assert np.array_equal(loss.value(y + 0.1), expected.value(y + 0.1))


def test_a_store_makes_the_second_call_free_but_for_a_few_answers_asked_again(folder, learn):
    with_log = PROBLEM.replace(
        "        return np.eye", "        print(end='.')\n        return np.eye"
    )
    (folder / "mine.py").write_text(with_log)
    _, first, _ = learn(store="answers")
    assert first.startswith("." * 3 * 51)
    code, second, _ = learn(store="answers", family="WeightedMSE")
    assert code == 0
    assert second.startswith("." * 6 + "WeightedMSE")  # a label and a candidate of each instance


def test_failed_samples_are_left_out_where_asked(folder, learn):
    failing = PROBLEM.replace(
        "        return np.eye", "        assert y_hat[0] < 1.2\n        return np.eye"
    )
    (folder / "mine.py").write_text(failing)
    code, _, err = learn(scale=2)
    assert code == 1
    assert "AssertionError" in err
    code, out, err = learn(scale=2, **{"on-failure": "skip", "max-failure-rate": 0.9})
    assert code == 0, err
    assert "3 fitted" in out


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
        ("mine:PickOne", {"out": "nowhere/loss"}, "--out must be a file in a folder that exists"),
        ("mine:PickOne", {"out": "."}, "--out must be a file in a folder that exists, got \\."),
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
        ("mine:PickOne", {"family": "Cubic"}, "--family must be one of .*, got 'Cubic'"),
        ("mine:PickOne", {"family": "Quadratc"}, "got 'Quadratc'. Did you mean Quadratic\\?"),
        ("mine:PickOne", {"scale": "wide"}, "--scale must be a number"),
        ("mine:PickOne", {"labels": "torn.npy"}, "labels in torn.npy cannot be read as .npy"),
        ("mine:PickOne", {"labels": "torn.npz"}, "labels in torn.npz cannot be read as .npz"),
        ("mine:PickOne", {"on-failure": "stop"}, '--on-failure must be "raise" or "skip"'),
        ("mine:PickOne", {"max-failure-rate": 2}, "--max-failure-rate must be from 0 to 1"),
        ("mine:PickOne", {"timeout": -1}, "--timeout must be"),
        ("mine:PickOne", {"n-samples": -1}, "--n-samples must be a whole number of at least 0"),
    ],
)
def test_bad_input_is_one_line_and_an_exit_code(folder, learn, problem, options, message):
    code, _, err = learn(problem, **options)
    assert code == (1 if "labels" in options else 2)  # a file, or a value
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert re.search(message, err)
    assert not (folder / "loss.safetensors").exists()


def test_a_missing_option_is_a_usage_error(command):
    code, _, err = command("learn", "mine:PickOne")
    assert code == 2
    assert "--labels" in err


def test_a_store_says_how_far_it_is(folder, learn, run_lodl):
    learn(store="answers")
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


def test_a_problem_that_keeps_its_contract_is_ok(folder, run_lodl):
    code, out, _ = run_lodl("check", "mine:PickOne", "--labels", "y.npy")
    assert code == 0
    assert "PickOne is ok on 3 instances" in out
