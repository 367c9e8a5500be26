import json
import re
import sys
import zlib
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import lodl
from lodl.oracle import Oracle

pytestmark = pytest.mark.slow


def test_a_page_shows_what_was_gained_and_tried(tmp_path):
    class Pick(lodl.LinearProblem):
        sense, unit = "max", "<EUR>"

        def solve(self, y_hat, context):
            return (y_hat == y_hat.max()).astype(float)

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 3))
    families = (lodl.DecisionHinges(),)
    model = lodl.DecisionFocusedRegressor(
        Pick(), Ridge(), families=families, n_rounds=0, n_samples=4
    ).fit(x, y)
    path = model.report(tmp_path / "deep" / "page.html")
    page = path.read_text()
    assert "&lt;EUR&gt;" in page
    assert "<EUR>" not in page
    for trial in model.result_.trials:
        assert trial.name in page


def test_instances_and_numbers_of_a_label_are_called_by_their_names():
    class Pick(lodl.LinearProblem):
        sense = "max"
        label_names: tuple[str, ...] = ("north", "south", "west")

        def solve(self, y_hat, context):
            return (y_hat == y_hat.max()).astype(float)

    rng = np.random.default_rng(0)
    days = [f"day {i}" for i in range(20)]
    x, y = pd.DataFrame(rng.normal(size=(20, 2)), index=days), rng.normal(size=(20, 3))
    model = lodl.DecisionFocusedRegressor(
        Pick(), Ridge(), families=(lodl.DecisionHinges(),), n_rounds=0, n_samples=4
    )
    result = model.fit(x, y).result_
    assert set(result.instances) == set(days)
    assert result.label_names == ("north", "south", "west")
    assert result.changes
    assert all(row.decision_baseline.split()[1] in result.label_names for row in result.changes)

    Pick.label_names = ("north", "south")
    with pytest.raises(lodl.errors.ProblemError, match="each of the 3 numbers in a label, got 2"):
        model.fit(x, y)


class Fickle(lodl.LinearProblem):
    """Fails if the first number of a prediction is about 0.5 or exactly -3."""

    sense, unit = "max", "EUR"

    def solve(self, y_hat, context):
        if 0.4 < y_hat[0] < 0.5 or y_hat[0] == -3.0:
            raise ValueError("no decision")
        return (y_hat == y_hat.max()).astype(float)


@pytest.fixture(scope="module")
def skipping():
    """A model fitted with solver failures: two labels, and some predictions."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = x @ [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]] + 0.3 * rng.normal(size=(60, 3))
    y[:, 0] += np.where((y[:, 0] > 0.4) & (y[:, 0] < 0.5), 0.1, 0.0)
    y[[7, 21], 0] = -3.0
    model = lodl.DecisionFocusedRegressor(
        Oracle(Fickle(), on_failure="skip"),
        Ridge(),
        families=(lodl.DecisionHinges(),),
        n_rounds=0,
        n_samples=4,
    )
    return model.fit(x, y)


def test_failures_are_counted_and_every_comparison_is_on_the_same_instances(skipping):
    result = skipping.result_
    n_failed = result.failures.baseline
    assert n_failed > 0
    assert result.failures.left_out == 2
    summary = skipping.summary().replace("\n", " ")
    assert "58 instances, 5 folds" in summary
    assert f"{n_failed} of 58 validation decisions failed with squared error" in summary
    assert set(result.instances) == {f"instance {i}" for i in set(range(60)) - {7, 21}}
    worst = max(result.regret_baseline)
    assert result.regret_baseline.count(worst) == n_failed + 1
    assert result.trials[result.selected].regret == pytest.approx(result.mean_selected)


def test_a_report_of_a_model_with_failures_has_numbers_only(skipping, tmp_path):
    result = skipping.result_
    json.dumps(asdict(result), allow_nan=False)
    page = skipping.report(tmp_path / "page.html").read_text()
    assert f"{result.failures.baseline} of 58 validation decisions failed" in page
    assert not re.search(r"\bnan\b", page, re.IGNORECASE)
    loaded = lodl.load_model(skipping.save(tmp_path / "model"), Fickle())
    assert loaded.result_ == result
    assert loaded.summary() == skipping.summary()


def test_one_validation_instance_cannot_tell(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 3))
    model = lodl.DecisionFocusedRegressor(
        Fickle(), Ridge(), families=(lodl.DecisionHinges(),), n_rounds=0, n_samples=4
    ).fit(x[1:] / 10, y[1:] / 10, validation=(x[:1] / 10, y[:1] / 10))
    page = model.report(tmp_path / "page.html").read_text()
    summary = model.summary().replace("\n", " ")
    for text in (summary, model.result_.verdict, page):
        assert "1 validation instance is too few to judge" in text
        assert not re.search(r"\binf\b", text)
    assert "1 instance, held out once" in summary


class Inexact(lodl.LinearProblem):
    """Takes the second best item for a quarter of the predictions."""

    sense = "max"

    def solve(self, y_hat, context):
        rank = int(zlib.crc32(y_hat.tobytes()) % 4 == 0)
        return (y_hat == np.sort(y_hat)[-1 - rank]).astype(float)


def test_a_solver_that_is_not_exact_is_named_everywhere(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = x @ rng.normal(size=(2, 3)) + 0.5 * rng.normal(size=(60, 3))
    model = lodl.DecisionFocusedRegressor(
        Inexact(), Ridge(), families=(lodl.DecisionHinges(),), n_rounds=0, n_samples=4
    ).fit(x, y)
    assert min(model.result_.regret_baseline) < 0
    page = model.report(tmp_path / "page.html").read_text()
    for text in (model.summary().replace("\n", " "), model.result_.verdict, page):
        assert "The solver is not exact: " in text
        assert "--4" not in text


def test_a_fit_calls_the_solver_for_decisions_that_changed_and_a_report_does_not(tmp_path):
    calls = []

    class Pick(lodl.LinearProblem):
        sense = "max"

        def solve(self, y_hat, context):
            calls.append(y_hat)
            return (y_hat == y_hat.max()).astype(float)

    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    y = np.exp(x @ rng.normal(size=(2, 3)))
    how = {"families": (lodl.DecisionHinges(),), "n_rounds": 0, "n_samples": 4}
    result = lodl.DecisionFocusedRegressor(Pick(), Ridge(), **how).fit(x, y).result_
    assert result.changes
    assert result.n_calls - result.trials[-1].n_calls == 2 * len(result.changes)
    assert result.n_calls == len(calls)
    for change in result.changes:
        assert change.decision_baseline != change.decision_selected
    n_before = 40 * (1 + 4 + 2) + 3  # label, samples, and the two models that are compared
    limited = lodl.DecisionFocusedRegressor(Pick(), Ridge(), max_calls=n_before + 5, **how)
    assert len(limited.fit(x, y).result_.changes) == 2
    assert limited.result_.n_calls == n_before + 4
    calls.clear()
    limited.report(tmp_path / "page.html")
    assert not calls


def test_a_solver_that_fails_at_decisions_to_show_spoils_no_fit(monkeypatch, caplog):
    def fails(*_, **__):
        raise lodl.errors.OracleError("The solver failed at instance 3.")

    monkeypatch.setattr(Oracle, "decide", fails)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    y = np.exp(x @ rng.normal(size=(2, 3)))
    how = {"families": (lodl.DecisionHinges(),), "n_rounds": 0, "n_samples": 4}
    model = lodl.DecisionFocusedRegressor(lodl.domains.TopK(1), Ridge(), **how).fit(x, y)
    assert model.result_.changes == ()
    assert "changed are not shown: The solver failed at instance 3." in caplog.text


def test_decisions_are_described_by_the_problem_and_instances_by_their_dates(caplog, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["folder/train.py", "--fast"])

    class Pick(lodl.LinearProblem):
        sense = "max"
        is_broken = False

        def solve(self, y_hat, context):
            return (y_hat == y_hat.max()).astype(float)

        def describe(self, z):
            if self.is_broken:
                raise ValueError("no words")
            return f"send van {int(z.argmax())}"

    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(40, 2)), index=pd.date_range("2026-03-01", periods=40))
    y = np.exp(x.to_numpy() @ rng.normal(size=(2, 3)))
    problem = Pick()
    model = lodl.DecisionFocusedRegressor(
        problem, Ridge(alpha=3), families=(lodl.DecisionHinges(),), n_rounds=0, n_samples=4
    )
    result = model.fit(x, y).result_
    assert result.changes
    for change in result.changes:
        assert change.instance.startswith("2026-0")
        assert len(change.instance) == 10
        assert change.decision_selected.startswith("send van ")
    assert result.estimator["alpha"] == "3"
    assert result.estimator["fit_intercept"] == "True"
    assert result.created.startswith("20")
    assert result.command == "train.py --fast"
    problem.is_broken = True
    assert model.fit(x, y).result_.changes[0].decision_selected.count(" ") == 2  # its numbers
    assert "`describe` raised ValueError: no words" in caplog.text


@pytest.mark.parametrize(("limit", "level"), [(0.0, "WARNING"), (1e9, "INFO")])
def test_a_long_fit_says_what_it_will_cost(monkeypatch, caplog, limit, level):
    monkeypatch.setattr("lodl.learning._fit._LONG", limit)
    rng = np.random.default_rng(0)
    model = lodl.DecisionFocusedRegressor(Fickle(), Ridge(), families=[], n_rounds=0, n_samples=1)
    with caplog.at_level("INFO", logger="lodl"):
        model.fit(rng.normal(size=(20, 2)) / 10, rng.normal(size=(20, 3)) / 10)
    (record,) = (record for record in caplog.records if "solver calls, " in record.message)
    assert record.levelname == level
    assert re.search(r"ms each, [\d.]+ s in all", record.message)
