"""The HTML page of a fit."""

import html
import re

import numpy as np
import pytest

from lodl.report import MEAN_LABEL, Evaluation, FitResult
from lodl.report._result import amounts
from lodl.report.fit_page import fit_page, title_of, write_page
from lodl.report.page import duration

pytestmark = pytest.mark.slow  # figures are drawn


@pytest.fixture(scope="module")
def result(fit_result):
    return fit_result(seconds=600.0)


@pytest.fixture(scope="module")
def page(result):
    return fit_page(result)


def test_page_leads_with_the_regret_in_the_objectives_unit(result, page):
    number = re.search(r'<p class="number">([^<]+)</p>', page).group(1)
    assert number == Evaluation.of_fit(result).headline
    assert number.endswith("%)")
    before, after = amounts(result.mean_baseline, result.mean_selected)
    assert f"{before} → {after} EUR" in number


def test_page_gives_the_verdict_in_the_words_of_the_result(result, page):
    assert result.verdict.startswith("Use this model: regret ")
    text = html.unescape(page)
    assert f"{result.verdict} The fit took 1,000 solver calls and 10 min." in text


def test_the_number_of_validation_instances_has_its_caveat_next_to_it(page):
    headline = page[page.index('id="headline"') : page.index("<nav")]
    assert "These instances selected the model, so expect a little less on new ones." in headline
    assert "40 validation instances: squared error → this model" in headline


@pytest.fixture(scope="module")
def evaluation():
    rows = {"plain model": 2.0, MEAN_LABEL: 9.0, "squared error": 2.5, "this model": 1.0}
    noise = np.random.default_rng(0).random(30)
    return Evaluation.of({name: mean + noise for name, mean in rows.items()}, np.full(30, 50.0))


def test_page_leads_with_new_data_if_there_are_any(result, evaluation):
    page = html.unescape(fit_page(result, evaluation))
    headline = page[page.index('id="headline"') : page.index("<nav")]
    assert evaluation.headline in headline
    assert "Regret per instance on 30 test instances: plain model → this model" in headline
    assert f"{evaluation.verdict} The fit took" in headline
    assert "expect a little less" not in headline
    for name in evaluation.regrets:
        assert f">{name}<" in headline
    assert page.count('data-title="this model is">better</td>') == 3


def test_a_gain_that_inexactness_explains_is_not_called_better(fit_result):
    noise = 0.01 * np.random.default_rng(0).random(40)
    result = fit_result(noise - 0.36, noise - 1.89)
    assert "No clear gain" in result.verdict
    assert 'data-title="this model is">no clear difference</td>' in fit_page(result)


def test_a_page_on_data_where_every_call_failed_says_so(result):
    failed = Evaluation.of({"plain model": np.full(3, np.nan), "x": np.ones(3)}, np.ones(3))
    page = fit_page(result, failed)
    assert "No instance can be compared" in page
    assert ">not known<" in page


def test_names_of_losses_are_in_the_details_only(page):
    assert "DecisionHinges" not in page[: page.index("<details")]
    assert "DecisionHinges" in page[page.index("<details") :]


def test_the_details_say_how_the_model_was_made(fit_result):
    run = {"created": "2026-03-01 12:00 UTC", "command": "lodl fit depot:Depot"}
    page = fit_page(fit_result(**run, estimator={"alpha": "1.0 " * 50}))
    details = page[page.index("<details") :]
    for text in ("2026-03-01 12:00 UTC", "lodl fit depot:Depot", "1.0 " * 50, "0.1.0"):
        assert text in details
    assert "fitted on 2026-03-01." in page[: page.index("<nav")]


def test_page_of_one_instance_shows_no_infinite_interval(fit_result):
    text = fit_page(fit_result([3.0], [1.0]))
    assert "1 validation instance is too few to judge" in text
    assert not re.search(r"\binf\b|nan", text)


def test_page_counts_better_worse_and_equal_decisions(fit_result):
    text = fit_page(fit_result([3.0, 1.0, 2.0], [1.0, 2.0, 2.0]))
    assert "1 is better" in text
    assert "by 2.00 EUR in total; 1 is worse, by 1.00 EUR; and 1 is worth the same" in text


def test_page_marks_the_selected_model_once(page):
    assert page.count(">selected</td>") == 1
    assert "Selected: average of DecisionHinges() and DecisionRanking()." in page


def test_texts_of_a_user_are_escaped(page):
    assert "Truck &lt;b&gt;" in page
    assert "<b>" not in page
    assert "<0>" not in page


def test_page_marks_a_selected_baseline(fit_result):
    page = fit_page(fit_result(selected=0))
    assert page.count(">selected</td>") == 1


def test_a_result_from_a_file_has_the_same_page_which_is_written(tmp_path, result, page):
    path = write_page(FitResult.from_json(result.to_json()), tmp_path / "new" / "fit.html")
    assert path.read_text(encoding="utf-8") == page


def test_page_has_no_links_to_elsewhere(page):
    assert not re.findall(r'(?:src|href)="(?!#|data:)', page)


@pytest.mark.parametrize(
    ("seconds", "text"), [(3.2, "3.2 s"), (600.0, "10 min"), (7200.0, "2.0 h")]
)
def test_durations_are_readable(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("problem", "title"),
    [
        ("WebAdvertising(budget=2)", "Web Advertising"),
        ("problem(bake_bread, profit, sense='max')", "Bake bread"),
        ("GurobiProblem(build_depot)", "Depot"),
        ("OrtoolsProblem(build)", "Ortools Problem"),
        ("PyomoProblem(unknown)", "Pyomo Problem"),
        ("GurobiProblem(<lambda>)", "Gurobi Problem"),
        ("Crews", "Crews"),
    ],
)
def test_a_title_is_a_name_without_parameters(problem, title):
    assert title_of(problem) == title
