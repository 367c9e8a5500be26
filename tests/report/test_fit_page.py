import html
import re

import pytest

from lodl._amounts import amounts
from lodl.report import FitRecord, write_fit_report
from lodl.report._fit_page import fit_page, title_of
from lodl.report.parts import read_json, write_json


def test_page_leads_with_the_regret_in_the_objectives_unit(fit_record):
    record = fit_record()
    page = fit_page(record)
    number = re.search(r'<p class="number">([^<]+)</p>', page).group(1)
    assert number == record.headline()
    assert number.endswith("%)")
    before, after = amounts(record.mean_two_stage, record.mean_kept)
    assert f"{before} → {after} EUR" in number


def test_page_gives_the_verdict_in_the_words_of_the_model(fit_record):
    record = fit_record()
    assert record.gain.verdict.startswith("Use this model: regret ")
    text = html.unescape(fit_page(record))
    assert f"{record.gain.verdict} It took 1,000 solver calls" in text


def test_page_of_one_instance_shows_no_infinite_interval(fit_record):
    record = fit_record(regret_two_stage=(3.0,), regret_kept=(1.0,), loss_kept=(1.0,))
    text = fit_page(record)
    assert "1 held-out instance is too few to tell" in text
    assert not re.search(r"\binf\b|nan", text)


def test_page_counts_better_worse_and_equal_decisions(fit_record):
    record = fit_record(
        regret_two_stage=(3.0, 1.0, 2.0), regret_kept=(1.0, 2.0, 2.0), loss_kept=(1.0, 2.0, 2.0)
    )
    text = fit_page(record)
    assert "1 is better" in text
    assert "by 2.00 EUR in total; 1 is worse, by 1.00 EUR; and 1 is worth the same" in text


def test_page_marks_what_was_kept_once(fit_record):
    page = fit_page(fit_record())
    assert page.count(">kept</td>") == 1
    assert "Kept: average of DecisionHinges() and DecisionRanking()." in page


def test_texts_of_a_user_are_escaped(fit_record):
    page = fit_page(fit_record())
    assert "Truck &lt;b&gt;" in page
    assert "<b>" not in page
    assert "<0>" not in page


def test_page_of_a_kept_2_stage_shows_no_learned_loss(fit_record):
    page = fit_page(fit_record(chosen="2-stage", coordinates=None, loss_kept=()))
    assert "Which errors matter" not in page
    assert "Does the loss tell the truth?" not in page
    assert page.count(">kept</td>") == 1


def test_record_survives_its_file(tmp_path, fit_record):
    record = fit_record()
    path = write_json(tmp_path / "fit.json", record)
    again = read_json(path, FitRecord)
    assert again.regret_kept == record.regret_kept
    assert again.history == record.history
    assert fit_page(again) == fit_page(record)


def test_page_is_one_file_without_links_to_elsewhere(tmp_path, fit_record):
    path = write_fit_report(fit_record(), tmp_path / "new" / "fit.html")
    page = path.read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(?!#|data:)', page)


@pytest.mark.parametrize(
    ("seconds", "text"), [(3.2, "3.2 s"), (600.0, "10 min"), (7200.0, "2.0 h")]
)
def test_durations_are_readable(seconds, text, fit_record):
    assert f"and {text}." in fit_page(fit_record(seconds=seconds))


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
