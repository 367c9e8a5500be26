import html
import re

import pytest

from lodl.report import FitResult
from lodl.report._text import amounts
from lodl.report.fit_page import fit_page, title_of, write_page


def test_page_leads_with_the_regret_in_the_objectives_unit(fit_result):
    result = fit_result()
    page = fit_page(result)
    number = re.search(r'<p class="number">([^<]+)</p>', page).group(1)
    assert number == result.headline
    assert number.endswith("%)")
    before, after = amounts(result.mean_baseline, result.mean_selected)
    assert f"{before} → {after} EUR" in number


def test_page_gives_the_verdict_in_the_words_of_the_model(fit_result):
    result = fit_result()
    assert result.verdict.startswith("Use this model: regret ")
    text = html.unescape(fit_page(result))
    assert f"{result.verdict} It took 1,000 solver calls" in text


def test_page_of_one_instance_shows_no_infinite_interval(fit_result):
    result = fit_result([3.0], [1.0])
    text = fit_page(result)
    assert "1 validation instance is too few to judge" in text
    assert not re.search(r"\binf\b|nan", text)


def test_page_counts_better_worse_and_equal_decisions(fit_result):
    result = fit_result([3.0, 1.0, 2.0], [1.0, 2.0, 2.0])
    text = fit_page(result)
    assert "1 is better" in text
    assert "by 2.00 EUR in total; 1 is worse, by 1.00 EUR; and 1 is worth the same" in text


def test_page_marks_the_selected_model_once(fit_result):
    page = fit_page(fit_result())
    assert page.count(">selected</td>") == 1
    assert "Selected: average of DecisionHinges() and DecisionRanking()." in page


def test_texts_of_a_user_are_escaped(fit_result):
    page = fit_page(fit_result())
    assert "Truck &lt;b&gt;" in page
    assert "<b>" not in page
    assert "<0>" not in page


def test_page_of_a_selected_baseline_shows_no_learned_loss(fit_result):
    page = fit_page(fit_result(selected=0, coordinates=None, loss_selected=()))
    assert "Which errors matter" not in page
    assert "Does the loss tell the truth?" not in page
    assert page.count(">selected</td>") == 1


def test_a_result_from_a_file_has_the_same_page(fit_result):
    result = fit_result()
    assert fit_page(FitResult.from_json(result.to_json())) == fit_page(result)


def test_the_plain_model_is_shown_if_it_was_scored(fit_result):
    assert ">plain model<" not in fit_page(fit_result())
    assert ">plain model<" in fit_page(fit_result(regret_plain=(5.0,) * 40))


def test_page_is_one_file_without_links_to_elsewhere(tmp_path, fit_result):
    path = write_page(fit_result(), tmp_path / "new" / "fit.html")
    page = path.read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(?!#|data:)', page)


@pytest.mark.parametrize(
    ("seconds", "text"), [(3.2, "3.2 s"), (600.0, "10 min"), (7200.0, "2.0 h")]
)
def test_durations_are_readable(seconds, text, fit_result):
    assert f"and {text}." in fit_page(fit_result(seconds=seconds))


@pytest.mark.parametrize(
    ("problem", "title"),
    [
        ("WebAdvertising(budget=2)", "Web Advertising"),
        ("problem(bake, profit, sense='max')", "bake"),
        ("Crews", "Crews"),
    ],
)
def test_a_title_is_a_name_without_parameters(problem, title):
    assert title_of(problem) == title
