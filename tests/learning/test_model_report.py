import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import lodl


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
    for row in model.history_:
        assert row.name in page


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
    assert all(one.two_stage.split()[0] in model.label_names_ for one in record.changes)

    Pick.label_names = ("north", "south")
    with pytest.raises(lodl.errors.ProblemError, match="each of the 3 numbers in a label, got 2"):
        model.fit(x, y)


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
