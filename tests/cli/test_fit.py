"""From files to a model and on to decisions, from the shell."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import lodl
from lodl.cli._modules import estimator_named

pytestmark = pytest.mark.slow

PROBLEM = """
import numpy as np
import lodl
import torch
from lodl.training.torch import TorchLearner, TrainingSettings
from xgboost import XGBRegressor

class Pick(lodl.LinearProblem):
    sense, unit = "max", "EUR"
    def solve(self, y_hat, context):
        is_open = True if context is None else np.asarray(context["open"], dtype=bool)
        return np.eye(len(y_hat))[np.argmax(np.where(is_open, y_hat, -99))]

class Route(lodl.Problem):
    sense = "min"
    def solve(self, y_hat, context):
        return {"stops": np.argsort(y_hat)[:2], "by": "road"}
    def objective(self, z, y, context):
        return y[z["stops"]].sum()

module = torch.nn.Linear(3, 4)
network = TorchLearner(module, n_initialisations=1, settings=TrainingSettings(n_steps=5))
trees = XGBRegressor(n_estimators=5, max_depth=2, n_jobs=1)
"""
RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = np.exp(X @ RNG.normal(size=(3, 4)))
OPEN = RNG.random((30, 4)) < 0.8


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(PROBLEM)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    sys.modules.pop("mine", None)


@pytest.fixture
def fit(folder, run_lodl):
    def run(problem="mine:Pick", *flags, **options):
        sys.modules.pop("mine", None)
        quick = {"features": "x.npy", "labels": "y.npy", "out": "model", "n-jobs": 1}
        quick |= {"n-samples": 3, "max-seconds": 0, "model": "mine:trees"}
        pairs = (quick | options).items()
        given = [text for name, value in pairs for text in (f"--{name}", str(value))]
        return run_lodl("fit", problem, *given, *flags)

    return run


def decisions_in(path):
    return [row["decision"] for row in json.loads(Path(path).read_text())]


def decide(run_lodl, *flags, problem="mine:Pick", features="x.npy", out="z.json", **options):
    given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    return run_lodl(
        "decide", "model", "--problem", problem, "--features", features, "--out", out, *given
    )


def test_fit_then_decide_gives_what_python_would(folder, fit, run_lodl, caplog):
    code, out, err = fit(report="page.html")
    assert code == 0, err
    assert re.match(r"(Keep squared error|Use this|No clear gain).* EUR per", out, re.DOTALL)
    assert "Model: model\nReport: page.html" in out
    assert "--features NEW --out decisions.csv" in out
    assert "EUR" in (folder / "page.html").read_text()
    assert "solver calls" in caplog.messages[0]  # what it will cost, before it starts
    code, out, err = decide(run_lodl)
    assert (code, out) == (0, "30 decisions: z.json\n"), err
    mine = sys.modules["mine"]
    model = lodl.DecisionFocusedRegressor(mine.Pick(), mine.trees, n_samples=3, max_seconds=0)
    model.fit(X, Y)
    expected = np.array(model.decide(X))
    np.testing.assert_array_equal(decisions_in("z.json"), expected)
    assert decide(run_lodl, out="z.npy")[0] == 0
    np.testing.assert_array_equal(np.load("z.npy"), expected)
    assert decide(run_lodl, out="z.csv")[0] == 0
    table = pd.read_csv("z.csv")
    assert list(table) == ["instance", "z0", "z1", "z2", "z3"]
    np.testing.assert_array_equal(table.drop(columns="instance"), expected)


def test_a_plan_is_printed_and_nothing_is_written(folder, fit, run_lodl):
    code, out, err = fit("mine:Pick", "--plan")
    assert code == 0, err
    assert re.match(r"Up to \d+ solver calls, \d+ for each of 30 instances, and a few dozen ", out)
    assert not (folder / "model").exists()
    (folder / "model").mkdir()  # of an earlier fit
    run = ["fit", "mine:Pick", "--features", "x.npy", "--labels", "y.npy", "--n-jobs", "1"]
    assert run_lodl(*run, "--plan")[0] == 0
    assert "--out must not exist yet, got model" in run_lodl(*run)[2]


def test_a_gap_in_features_is_an_error_of_one_line(folder, fit, run_lodl):
    towns = np.where(X[:, 0] > 0, "Ulm", "Bern")
    table = pd.DataFrame(X, columns=["wind", "sun", "rain"]).assign(town=towns)
    table.to_csv("x.csv", index=False)
    assert fit(features="x.csv", model="linear")[0] == 0
    table.loc[3, "sun"] = np.nan
    table.to_csv("gap.csv", index=False)
    code, _, err = decide(run_lodl, features="gap.csv")
    assert (code, err.count("\n")) == (2, 1)
    assert "The features have a gap" in err
    code, _, err = fit(features="gap.csv", model="linear", out="other")
    assert code == 2
    assert "--features must have every value, got none in row 3, column 'sun'" in err


def test_tables_keep_their_names_and_groups_are_no_feature(folder, fit, run_lodl):
    table = pd.DataFrame(X, columns=["wind", "sun", "rain"]).assign(town=np.arange(30) // 3)
    table.to_csv("x.csv", index=False)
    pd.DataFrame(Y, columns=["n", "e", "s", "w"]).to_parquet("y.parquet")
    np.savez("context.npz", open=OPEN)
    files = {"features": "x.csv", "labels": "y.parquet", "context": "context.npz"}
    code, out, err = fit("mine:Pick", "--shuffle", groups="town", validation=3, **files)
    assert code == 0, err
    assert "Predicts n, e, s, w." in out
    assert "30 instances, 3 folds" in out
    assert "--features NEW --context NEW_CONTEXT --out decisions.csv" in out
    lines = [json.dumps({"open": row.tolist()}) for row in OPEN]
    (folder / "context.jsonl").write_text("\n".join(lines))
    chosen = []
    for context in ("context.npz", "context.jsonl"):
        code, _, err = decide(run_lodl, features="x.csv", context=context, out="z.npy")
        assert code == 0, err
        chosen.append(np.load("z.npy"))
    np.testing.assert_array_equal(chosen[0], chosen[1])
    assert (chosen[0].astype(bool) <= OPEN).all()
    table.drop(columns="sun").to_csv("less.csv", index=False)
    code, _, err = decide(run_lodl, features="less.csv", context="context.npz")
    assert code == 2
    assert "--features must have the columns it had in `fit`: missing are 'sun'" in err
    code, _, err = decide(run_lodl, features="x.csv")
    assert code == 2
    assert err == "Error: --context must be given: the model was fitted with one, got None.\n"


def test_test_data_are_evaluated_after_the_fit_and_by_a_command(folder, fit, run_lodl):
    names = ["wind", "sun", "rain"]
    pd.DataFrame(X, columns=names).assign(town=np.arange(30) // 3).to_csv("x.csv", index=False)
    pd.DataFrame(X[::-1], columns=names).assign(note=1).to_csv("new.csv", index=False)
    np.save(folder / "y_new.npy", Y[::-1])
    new = {"test-features": "new.csv", "test-labels": "y_new.npy"}
    new_page = new | {"report": "page.html"}
    code, said, err = fit(features="x.csv", groups="town", model="linear", **new_page)
    assert code == 0, err
    assert "30 test instances" in (folder / "page.html").read_text()
    given = ["--problem", "mine:Pick", "--features", "new.csv", "--labels", "y_new.npy"]
    code, table, err = run_lodl("evaluate", "model", *given)
    assert code == 0, err
    rows = table.splitlines()
    assert [row[:13].strip() for row in rows[1:3]] == ["plain model", "mean label"]
    assert rows[6].startswith("Regret per instance, in EUR: 30 test instances")
    assert rows[7].startswith("This model decides like the plain model: regret ")
    assert "\n".join(rows[:6]) in said
    code, _, err = fit(out="other", **{"test-features": "new.csv"})
    assert code == 2
    assert "--test-features" in err


def test_a_network_is_named_again(folder, fit, run_lodl):
    code, _, err = fit(model="mine:network")
    assert code == 0, err
    code, _, err = decide(run_lodl)
    assert code == 1
    assert "not its code" in err
    assert decide(run_lodl, model="mine:module")[0] == 0


def test_decisions_of_any_kind_are_written_as_json(folder, fit, run_lodl):
    assert fit("mine:Route")[0] == 0
    assert decide(run_lodl, problem="mine:Route")[0] == 0
    first = decisions_in("z.json")[0]
    assert first["by"] == "road"
    assert len(first["stops"]) == 2
    code, _, err = decide(run_lodl, problem="mine:Route", out="z.csv")
    assert code == 2
    assert "--out must end with .json for these decisions" in err


def test_a_model_may_be_named():
    x = np.zeros((9, 3))
    assert estimator_named("linear", x, (4,), 0) is None
    network = estimator_named("mlp", np.zeros((9, 2, 3)), (2, 4), 0)
    assert network(torch.zeros(9, 2, 3)).shape == (9, 2, 4)
    for name in ("xgboost", "lightgbm", "catboost"):
        assert estimator_named(name, x, (4,), 5).get_params()["random_state"] == 5


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"model": "forest"}, 2, "--model must be one of linear, mlp, xgboost"),
        ({"model": "mine:forest"}, 2, "mine has no 'forest'"),
        ({"features": "absent.csv"}, 1, "There is no file absent.csv"),
        ({"features": "mine.py"}, 1, "features in mine.py cannot be read: the name of the file"),
        ({"features": "short.npy"}, 2, "--features must have one row per instance"),
        ({"labels": "two.npz"}, 1, "labels in two.npz must be one array, got 2: a, b"),
        ({"labels": "words.csv"}, 2, "--labels must have numbers only, got 'Ulm' in row 0, column"),
        ({"labels": "gap.csv"}, 2, "--labels must be finite, got nan in row 3, column 'b'"),
        ({"context": "two.npz"}, 1, r"must have arrays of one length, got \[2, 3\]"),
        ({"context": "torn.jsonl"}, 1, "context in torn.jsonl cannot be read as .jsonl"),
        ({"groups": "town"}, 2, "--groups must be a column of the features, got 'town'"),
        ({"validation": 1.5}, 2, "--validation must be a number of folds"),
        ({"max-calls": 3}, 2, "--max-calls must be at least"),
        ({"seed": -1}, 2, "--seed must be a whole number of at least 0"),
        ({"out": "."}, 2, "--out must not exist yet, got .* or add --overwrite"),
    ],
)
def test_bad_input_is_one_line_and_an_exit_code(folder, fit, options, code, message):
    np.save("short.npy", X[:3])
    np.savez("two.npz", a=np.zeros(2), b=np.zeros(3))
    (folder / "words.csv").write_text("town\nUlm\n")
    (folder / "gap.csv").write_text("a,b\n" + "1,2\n" * 3 + "1,\n" + "1,2\n" * 26)
    (folder / "torn.jsonl").write_text('{"open": [1,')
    ended, _, err = fit(**options)
    assert ended == code, err
    assert re.search(f"^Error: .*{message}", err, re.MULTILINE), err
    assert not (folder / "model").exists()


def test_decide_refuses_what_it_cannot_write_before_it_loads(folder, run_lodl):
    code, _, err = decide(run_lodl, out="z.xlsx")
    assert code == 2
    assert "--out must end with .csv, .json or .npy" in err
    code, _, err = decide(run_lodl)
    assert code == 1
    assert "there is no checksums.json in it" in err


def test_a_saved_model_calls_the_solver_with_the_options_of_the_oracle(folder, fit, run_lodl):
    assert fit()[0] == 0
    code, _, err = decide(run_lodl, timeout=-1)
    assert code == 2
    assert "--timeout must be" in err
    data = ("--features", "x.npy", "--labels", "y.npy", "--store", "answers.db")
    code, said, err = run_lodl("evaluate", "model", "--problem", "mine:Pick", *data)
    assert code == 0, err
    assert "30 test instances" in said
    assert (folder / "answers.db").exists()


@pytest.mark.parametrize("model", ["linear", "xgboost", "lightgbm", "catboost"])
def test_texts_in_a_table_are_known_by_name(model, folder, fit, run_lodl):
    if model != "linear":
        pytest.importorskip(model)
    colour = np.array(["red", "green", "blue"])[np.arange(120) % 3]
    worth = np.stack([colour == "red", colour == "green", colour == "blue"], axis=1) * 5.0
    pd.DataFrame({"size": RNG.normal(size=120), "colour": colour}).to_csv("x.csv", index=False)
    np.save("y.npy", worth + 0.1 * RNG.normal(size=worth.shape))
    code, _, err = fit(features="x.csv", model=model, validation=2)
    assert code == 0, err
    new = ["blue", "red", "aqua", "blue"]  # in another order, one is missing, one is new
    pd.DataFrame({"colour": new, "size": np.zeros(4)}).to_csv("new.csv", index=False)
    code, _, err = decide(run_lodl, features="new.csv")
    assert code == 0, err
    decisions = np.argmax(decisions_in("z.json"), axis=1)
    assert decisions[[0, 1, 3]].tolist() == [2, 0, 2]


def test_ids_that_are_numbers_name_rows_of_labels_by_position(folder, fit):
    table = pd.DataFrame(X, columns=["wind", "sun", "rain"]).assign(day=np.arange(130, 100, -1))
    table.to_csv("x.csv", index=False)
    pd.DataFrame(Y, columns=["n", "e", "s", "w"]).to_csv("y.csv", index=False)
    code, _, err = fit(features="x.csv", labels="y.csv", id="day")
    assert code == 0, err


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y"])
def test_decisions_have_the_ids_and_the_names_of_their_items(form, folder, fit, run_lodl):
    days = pd.date_range("2024-02-01", periods=30).strftime(form)
    x = pd.DataFrame(X, columns=["wind", "sun", "rain"]).assign(day=days)
    x.to_csv("x.csv", index=False, sep=";", decimal=",")
    y = pd.DataFrame(Y, columns=["n", "e", "s", "w"]).assign(day=days)
    y[::-1].to_csv("y.csv", index=False)
    code, said, err = fit(features="x.csv", labels="y.csv", id="day", report="page.html")
    assert code == 0, err
    assert "5 folds in th" in said  # their order: blocks of days
    assert "--features NEW --id day --out decisions.csv" in said
    code, _, err = decide(run_lodl, features="x.csv", out="z.csv")
    assert code == 0, err
    table = pd.read_csv("z.csv", sep=";")
    assert list(table) == ["day", "n", "e", "s", "w"]
    assert table["day"].tolist() == list(days)
    assert (table[["n", "e", "s", "w"]].sum(axis=1) == 1).all()
    assert decide(run_lodl, features="x.csv", id="day")[0] == 0
    row = json.loads(Path("z.json").read_text())[0]
    assert row["day"] == days[0]  # as it was read
    assert sorted(row["decision"]) == ["e", "n", "s", "w"]
    code, said, err = run_lodl("report", "model", "--out", "again.html")
    assert (code, said) == (0, "Report: again.html\n"), err
    given = ["--problem", "mine:Pick", "--features", "x.csv", "--labels", "y.csv", "--id", "day"]
    code, said, err = run_lodl("report", "model", *given)
    assert (code, said) == (0, "Report: report.html\n"), err
    assert "30 test instances" in Path("report.html").read_text()
    code, _, err = run_lodl("report", "model", "--features", "x.csv")
    assert code == 2
    assert "--features, --labels and --problem must be given together" in err


def test_a_problem_in_a_file_is_fitted(folder, fit):
    assert fit("./mine.py:Pick")[0] == 0
