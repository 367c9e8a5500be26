import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt

import lodl
from lodl.errors import InvalidInputError
from lodl.report import Evaluation, plots


class TopTwo(lodl.LinearProblem):
    sense = "max"
    unit = "EUR"

    def solve(self, y_hat, context):
        return np.isin(np.arange(4), np.argsort(y_hat)[-2:]).astype(float)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    y = np.exp(x @ rng.normal(size=(2, 4)))
    model = lodl.DecisionFocusedRegressor(
        TopTwo(), families=(lodl.DecisionHinges(),), n_rounds=1, n_samples=8, ensemble=False
    )
    return model.fit(x, y, validation=2)


@pytest.fixture
def result(model):
    return model.result_


@pytest.mark.parametrize("name", plots.__all__)
def test_every_figure_draws_into_given_or_new_axes(model, result, name):
    draw = getattr(plots, name)
    given = plt.figure().subplots()
    assert draw(result, ax=given) is given
    assert given.has_data()
    assert draw(model).has_data()
    plt.close("all")


def test_result_agrees_with_the_models_own_gain(model, result):
    assert result.mean_baseline == pytest.approx(model.result_.mean_baseline)
    assert result.mean_selected == pytest.approx(model.result_.mean_selected)
    assert result.unit == "EUR"
    assert len(result.trials) == len(model.result_.trials)


def test_changed_decisions_are_worth_what_the_result_says(model, result):
    for change in result.changes:
        i = result.instances.index(change.instance)
        assert change.regret_baseline == result.regret_baseline[i]
        assert change.regret_selected == result.regret_selected[i]
        assert (
            change.regret_selected == change.regret_baseline
            or change.decision_baseline != change.decision_selected
        )


@pytest.mark.slow
def test_report_of_a_model_is_a_page(model, tmp_path):
    path = model.report(tmp_path / "report.html")
    assert Evaluation.of_fit(model.result_).headline in path.read_text(encoding="utf-8")
    x, y = np.ones((8, 2)), np.arange(32.0).reshape(8, 4) ** 1.5 % 7
    path = model.report(tmp_path / "test.html", x, y)
    assert model.evaluate(x, y).headline in path.read_text(encoding="utf-8")
    with pytest.raises(InvalidInputError, match="`X` and `Y` must be given together"):
        model.report(path, x)
