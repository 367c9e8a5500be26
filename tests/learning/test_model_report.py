import json
import re
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
        sense, label_names = "max", ("north", "south", "west")

        def solve(self, y_hat, context):
            return (y_hat == y_hat.max()).astype(float)

    rng = np.random.default_rng(0)
    days = [f"day {i}" for i in range(20)]
    x, y = pd.DataFrame(rng.normal(size=(20, 2)), index=days), rng.normal(size=(20, 3))
    model = lodl.DecisionFocusedRegressor(
        Pick(), Ridge(), families=(lodl.DecisionHinges(),), n_rounds=0, n_samples=4
    )
    record = model.fit(x, y).record()
    assert set(record.instances) == set(days)
    assert model.label_names_ == ("north", "south", "west")
    assert all(one.decision_baseline.split()[0] in model.label_names_ for one in record.changes)

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
    failures = skipping.gain_.failures
    assert failures.two_stage > 0
    assert failures.left_out == 2
    assert "58 instances, 5 folds" in skipping.summary().replace("\n", " ")
    said = f"{failures.two_stage} of 58 validation decisions failed with squared error"
    assert said in skipping.summary().replace("\n", " ")
    held_out = skipping.held_out_
    assert set(held_out.index) == set(range(60)) - {7, 21}
    known = held_out.two_stage[~held_out.failed_two_stage]
    assert (held_out.two_stage[held_out.failed_two_stage] == known.max()).all()
    kept = [row for row in skipping.history_ if row.name == skipping.chosen_][-1]
    assert kept.regret == pytest.approx(skipping.gain_.chosen)


def test_a_report_of_a_model_with_failures_has_numbers_only(skipping, tmp_path):
    record = skipping.record()
    json.dumps(asdict(record), allow_nan=False)
    assert record.gain.mean == pytest.approx(skipping.gain_.difference)
    page = skipping.report(tmp_path / "page.html").read_text()
    assert f"{record.failures.baseline} of 58 validation decisions failed" in page
    assert not re.search(r"\bnan\b", page, re.IGNORECASE)
    loaded = lodl.load_model(skipping.save(tmp_path / "model"), Fickle())
    assert loaded.gain_ == skipping.gain_
    assert loaded.summary() == skipping.summary()


def test_one_validation_instance_cannot_tell(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 3))
    model = lodl.DecisionFocusedRegressor(
        Fickle(), Ridge(), families=(lodl.DecisionHinges(),), n_rounds=0, n_samples=4
    ).fit(x[1:] / 10, y[1:] / 10, validation=(x[:1] / 10, y[:1] / 10))
    page = model.report(tmp_path / "page.html").read_text()
    summary = model.summary().replace("\n", " ")
    for text in (summary, str(model.gain_), page):
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
    assert (model.held_out_.two_stage < 0).any()
    page = model.report(tmp_path / "page.html").read_text()
    for text in (model.summary().replace("\n", " "), str(model.gain_), page):
        assert "The solver is not exact: " in text
        assert "--4" not in text


def test_a_report_calls_the_solver_only_for_decisions_that_changed():
    calls = []

    class Pick(lodl.LinearProblem):
        sense = "max"

        def solve(self, y_hat, context):
            calls.append(y_hat)
            return (y_hat == y_hat.max()).astype(float)

    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    y = np.exp(x @ rng.normal(size=(2, 3)))
    model = lodl.DecisionFocusedRegressor(
        Pick(), Ridge(), families=(lodl.DecisionHinges(),), n_rounds=0, n_samples=4
    ).fit(x, y)
    calls.clear()
    record = model.record()
    assert record.changes
    assert len(calls) == 2 * len(record.changes)
