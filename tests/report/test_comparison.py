import html
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lodl.errors import InvalidInputError
from lodl.report import Comparison, PairedDifference


def shifted(record, by, **changes):
    regrets = tuple(np.asarray(record.regret_kept) + by)
    return replace(record, regret_kept=regrets, **changes)


def test_paired_difference_agrees_with_a_paired_t_test(fit_record):
    one = fit_record()
    other = shifted(one, np.random.default_rng(1).normal(-0.5, 1.0, size=40))
    found = PairedDifference.of(one, other)
    test = stats.ttest_rel(one.regret_kept, other.regret_kept)
    assert found.is_paired
    assert (found.low + found.high) / 2 == pytest.approx(found.mean)
    error = (found.high - found.low) / (2 * 1.96)
    assert found.mean / error == pytest.approx(test.statistic)


def test_a_constant_shift_is_a_sure_difference(fit_record):
    one = fit_record()
    comparison = Comparison({"A": one, "B": shifted(one, -0.25)})
    (difference,) = comparison.differences().values()
    assert difference.mean == pytest.approx(0.25)
    (sentence,) = comparison.sentences()
    assert sentence.startswith("B decides better than A, by 0.250 EUR per instance")


def test_runs_on_other_instances_are_compared_unpaired_and_say_so(fit_record):
    one = fit_record()
    comparison = Comparison({"A": one, "B": shifted(one, -0.25, data="other")})
    difference = comparison.differences()["B"]
    assert not difference.is_paired
    assert difference.low < 0 < difference.high
    assert any("judged on different instances" in sentence for sentence in comparison.sentences())


def test_runs_on_the_same_labels_are_paired_whatever_their_instances_are_called(fit_record):
    one = fit_record()
    names = tuple(f"day {i}" for i in range(40))
    comparison = Comparison({"A": one, "B": shifted(one, -0.25, instances=names)})
    assert comparison.differences()["B"].is_paired
    assert len(comparison.sentences()) == 1


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"unit": "cent"}, r"one unit, got EUR for A, EUR for B, cent for C\. Compare runs"),
        ({"unit": ""}, r"one unit, got EUR for A, EUR for B, none for C\."),
        ({"problem": "Ship"}, r"one problem, got Truck <b> for A, Truck <b> for B, Ship for C\."),
        (
            {"problem_parameters": {"class": "Truck", "capacity": "4"}},
            r"one problem, got Truck <b> \(capacity=3\) for A, .* Truck <b> \(capacity=4\) for C\.",
        ),
    ],
)
def test_runs_of_other_problems_or_units_are_not_compared(changes, match, fit_record):
    one = fit_record(problem_parameters={"class": "Truck", "capacity": "3"})
    with pytest.raises(InvalidInputError, match=match):
        Comparison({"A": one, "B": one, "C": replace(one, **changes)})


def test_a_handful_of_instances_does_not_tell_runs_apart(fit_record):
    one = fit_record(instances=("a",), regret_two_stage=(3.0,), regret_kept=(1.0,))
    comparison = Comparison({"A": one, "B": replace(one, regret_kept=(2.0,))})
    assert comparison.sentences() == [
        "1 held-out instance is too few to tell A from B. Use at least 5 validation instances, "
        "better 50."
    ]
    assert "inf" not in comparison.table().markdown()


def test_page_of_one_instance_shows_no_infinite_interval(tmp_path, fit_record):
    one = fit_record(instances=("a",), regret_two_stage=(3.0,), regret_kept=(1.0,))
    two = replace(one, regret_kept=(2.0,))
    page = Comparison({"A": one, "B": two}).write(tmp_path / "compare.html").read_text()
    assert not re.search(r"\b(inf|nan)\b", page)


def test_page_shows_the_verdict_on_every_run(tmp_path, fit_record):
    one = fit_record()
    page = Comparison({"A": one, "B": shifted(one, 1.0)}).write(tmp_path / "compare.html")
    text = html.unescape(page.read_text(encoding="utf-8"))
    assert one.gain.verdict in text
    assert shifted(one, 1.0).gain.verdict in text


def test_page_shows_every_run(tmp_path, fit_record):
    one = fit_record()
    path = Comparison({"A": one, "B": shifted(one, 1.0), "C": one}).write(tmp_path / "compare.html")
    page = path.read_text(encoding="utf-8")
    assert all(f">{name}</th>" in page for name in "ABC")
    assert "A decides better than B, by " in page


def test_one_run_is_no_comparison(fit_record):
    with pytest.raises(InvalidInputError, match="at least two runs"):
        Comparison({"A": fit_record()})
