"""Results as notebooks show them."""

import numpy as np
import pytest
import sklearn

import lodl
from lodl.evaluation import diagnose, summarise
from lodl.report import Comparison, Evaluation


class Pick(lodl.LinearProblem):
    sense, unit = "max", "<EUR>"

    def solve(self, y_hat, context):
        return (y_hat == y_hat.max()).astype(float)


@pytest.fixture(scope="module")
def y():
    return np.random.default_rng(0).normal(size=(20, 3))


@pytest.fixture(scope="module")
def loss(y):
    return lodl.learn_loss(Pick(), y, n_samples=4)


def test_an_evaluation_is_a_table_with_its_verdict():
    evaluation = Evaluation.of(
        {"plain": np.full(9, 3.0), "this model": np.ones(9)}, np.ones(9), unit="<EUR>"
    )
    html = evaluation._repr_html_()
    assert html.count("<tr>") == 3
    assert "Use this model: compared with plain" in html
    assert "<EUR>" not in html
    failed = Evaluation.of({"plain": np.full(9, np.nan), "x": np.ones(9)}, np.ones(9))
    assert "No instance can be compared" in failed._repr_html_()


def test_the_result_of_a_fit_is_its_summary(fit_result):
    result = fit_result()
    html = result._repr_html_()
    assert "Use this model: " in html
    assert html.count("<tr>") == 1 + len(result.trials)


def test_a_comparison_of_fits_is_a_table_with_its_conclusions(fit_result):
    comparison = Comparison({"A": fit_result(), "<B>": fit_result()})
    html = comparison._repr_html_()
    assert html.count("<tr>") == 3
    assert "No clear difference between A and &lt;B&gt;" in html


def test_losses_and_what_is_said_about_them_are_tables(y, loss):
    assert "20, of which" in loss._repr_html_()
    assert "<b>DecisionHinges" in summarise(loss)._repr_html_()
    assert "rank correlation" in diagnose(loss, Pick(), y, y + 0.5)._repr_html_()


def test_the_check_of_a_problem_is_a_sentence(y):
    assert "<p>Pick is ok on" in lodl.Oracle(Pick()).check(y)._repr_html_()


@pytest.mark.slow
def test_a_fitted_regressor_is_shown_as_scikit_learn_does_with_its_verdict(y):
    model = lodl.DecisionFocusedRegressor(Pick(), families=[], n_rounds=0, n_samples=1)
    before = model._repr_mimebundle_()["text/html"]
    assert "sk-top-container" in before
    model.fit(np.ones((20, 1)) * np.arange(20)[:, None], y)
    after = model._repr_html_()
    assert "sk-top-container" in after
    assert "EUR&gt; per instance" in after
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
