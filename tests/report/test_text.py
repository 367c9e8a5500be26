import numpy as np
import pytest

from lodl.report import ChangedDecision
from lodl.report._result import amounts


def decision_texts(before, after, names):
    changed = ChangedDecision.of("one", (before, after), (2.0, 1.0), names)
    return changed.decision_baseline, changed.decision_selected


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((86.204, 30.536), ["86.2", "30.5"]),
        ((9783.2,), ["9,783"]),
        ((0.2554, 0.03107), ["0.255", "0.031"]),
        ((1.0, -0.0), ["1.00", "0.00"]),
        ((0.0, 0.0), ["0", "0"]),
        ((1.5, float("nan")), ["1.50", "nan"]),
        ((1e-9,), ["1e-09"]),
        ((), []),
    ],
)
def test_numbers_beside_each_other_have_the_same_decimals(values, texts):
    assert amounts(*values) == texts


_NAMES = ("early", "late", "night")


def test_named_decisions_say_only_what_changed():
    before, after = decision_texts(np.array([1.0, 2.0, 0.0]), np.array([1.0, -0.0, 0.5]), _NAMES)
    assert before == "late 2, night 0"
    assert after == "late 0, night 0.5"


def test_named_zeros_and_ones_are_taken_or_not():
    before, after = decision_texts(np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]), _NAMES)
    assert before == "takes late"
    assert after == "takes none of these"


def test_as_many_changes_are_listed_as_fit_in_a_line():
    names = [f"product {i}" for i in range(30)]
    _, after = decision_texts(np.zeros(30), np.full(30, 2.0), names)
    assert after.startswith("product 0 2, product 1 2, ")
    listed, _, n_more = after.removesuffix(" more").rpartition(" and ")
    assert 60 < len(listed) <= 80
    assert listed.count(",") + 1 + int(n_more) == 30


def test_numbers_that_differ_by_less_than_a_thousandth_are_not_listed():
    before, after = decision_texts(np.array([900.0, 1.0, 3]), np.array([900.5, 2.0, 3]), _NAMES)
    assert (before, after) == ("late 1", "late 2")


def test_large_numbers_of_a_decision_have_no_exponent():
    before, after = decision_texts(np.array([1234.5, 1.0]), np.array([999.4, -20000.0]), None)
    assert (before, after) == ("1,234 1", "999 -20,000")


def test_entries_of_matrices_are_named_by_their_places():
    assert decision_texts(np.eye(2), np.eye(2)[::-1], None) == (
        "takes (0, 0), (1, 1)",
        "takes (0, 1), (1, 0)",
    )


def test_a_problem_may_describe_its_decisions():
    words = "packs  a\nbox", "packs " + "a" * 300
    changed = ChangedDecision.of("one", (1, 2), (2.0, 1.0), None, words)
    assert changed.decision_baseline == "packs a box"
    assert len(changed.decision_selected) == 200


def test_decisions_of_another_kind_are_told_as_they_are():
    assert decision_texts([2, 0], (1,), _NAMES) == ("[2, 0]", "(1,)")
    assert decision_texts({"share": np.array([0.25, -0.0])}, np.eye(2), None) == (
        "share: 0.25 0",
        "1 0 / 0 1",
    )
    assert decision_texts(np.eye(9)[3], np.zeros(2), None) == ("takes 3", "0 0")


def test_long_decisions_say_how_much_is_left_out():
    names = [f"a long name, number {i}" for i in range(20)]
    before, _ = decision_texts(np.zeros(20), np.full(20, 2.0), names)
    assert before.endswith("and 17 more")
    assert max(map(len, decision_texts(np.zeros(500), np.ones(500), None))) <= 80
