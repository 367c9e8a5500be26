from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lodl.errors import InvalidInputError
from lodl.report import Comparison


def shifted(result, by, **changes):
    regrets = tuple(np.asarray(result.regret_selected) + by)
    return replace(result, regret_selected=regrets, **changes)


def test_paired_difference_agrees_with_a_paired_t_test(fit_result):
    one = fit_result()
    other = shifted(one, np.random.default_rng(1).normal(-0.5, 1.0, size=40))
    found = Comparison({"A": one, "B": other}).gains()["B"]
    test = stats.ttest_rel(one.regret_selected, other.regret_selected)
    assert (found.low + found.high) / 2 == pytest.approx(found.mean)
    error = (found.high - found.low) / (2 * 1.96)
    assert found.mean / error == pytest.approx(test.statistic)


def test_a_constant_shift_is_a_sure_difference(fit_result):
    one = fit_result()
    comparison = Comparison({"A": one, "B": shifted(one, -0.25)})
    (difference,) = comparison.gains().values()
    assert difference.mean == pytest.approx(0.25)
    (sentence,) = comparison.sentences()
    assert sentence.startswith("B decides better than A, by 0.250 EUR per instance")


def test_runs_on_other_instances_are_compared_unpaired_and_say_so(fit_result):
    one = fit_result()
    comparison = Comparison({"A": one, "B": shifted(one, -0.25, data="other")})
    difference = comparison.gains()["B"]
    assert difference.low < 0 < difference.high
    assert any(
        "validated on different instances" in sentence for sentence in comparison.sentences()
    )


def test_runs_on_the_same_labels_are_paired_whatever_their_instances_are_called(fit_result):
    one = fit_result()
    names = tuple(f"day {i}" for i in range(40))
    comparison = Comparison({"A": one, "B": shifted(one, -0.25, instances=names)})
    assert comparison.gains()["B"].standard_error == pytest.approx(0)
    assert len(comparison.sentences()) == 1


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"unit": "cent"}, r"one unit, got EUR for A, EUR for B, cent for C\. Compare fits"),
        ({"unit": ""}, r"one unit, got EUR for A, EUR for B, none for C\."),
        ({"problem": "Ship"}, r"one problem, got Truck <b> for A, Truck <b> for B, Ship for C\."),
        (
            {"problem": "Ship", "problem_parameters": {"class": "Ship", "crew": "9"}},
            r"one problem, got Truck <b> for A, Truck <b> for B, Ship for C\.",
        ),
        (
            {"problem_parameters": {"class": "Truck", "capacity": "4"}},
            r"one problem, got Truck <b> \(capacity=3\) for A, .* Truck <b> \(capacity=4\) for C\.",
        ),
    ],
)
def test_runs_of_other_problems_or_units_are_not_compared(changes, match, fit_result):
    one = fit_result(problem_parameters={"class": "Truck", "capacity": "3"})
    with pytest.raises(InvalidInputError, match=match):
        Comparison({"A": one, "B": one, "C": replace(one, **changes)})


def test_a_handful_of_instances_does_not_tell_runs_apart(fit_result):
    one = fit_result([3.0], [1.0])
    comparison = Comparison({"A": one, "B": replace(one, regret_selected=(2.0,))})
    assert comparison.sentences() == [
        "1 validation instance is too few to tell A from B. Use at least 5, better 50."
    ]
    assert "inf" not in comparison.table().markdown()


def test_the_table_has_a_row_for_every_result(fit_result):
    one = fit_result()
    text = str(Comparison({"A": one, "B": shifted(one, 1.0), "C": one}))
    assert [line[0] for line in text.splitlines()[1:4]] == ["A", "B", "C"]
    assert text.splitlines()[4].startswith("Validation regret per instance, in EUR; ")
    assert "A decides better than B, by " in text


def test_one_run_is_no_comparison(fit_result):
    with pytest.raises(InvalidInputError, match="at least two results"):
        Comparison({"A": fit_result()})
