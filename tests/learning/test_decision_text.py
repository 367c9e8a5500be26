import numpy as np

from lodl.learning._decision_text import in_words

_NAMES = ("early", "late", "night")


def test_named_decisions_say_only_what_changed():
    before, after = in_words(np.array([1.0, 2.0, 0.0]), np.array([1.0, -0.0, 0.5]), _NAMES)
    assert before == "late 2, night 0"
    assert after == "late 0, night 0.5"


def test_decisions_of_another_kind_are_told_as_they_are():
    assert in_words([2, 0], (1,), _NAMES) == ("[2, 0]", "(1,)")
    assert in_words({"share": np.array([0.25, -0.0])}, np.eye(2), None) == (
        "share: 0.25 0",
        "1 0 / 0 1",
    )
    assert in_words(np.eye(9)[3], np.zeros(2), None) == ("ones at 3", "0 0")


def test_long_decisions_say_how_much_is_left_out():
    names = [f"a long name, number {i}" for i in range(20)]
    before, _ = in_words(np.zeros(20), np.ones(20), names)
    assert before.endswith("and 17 more")
    assert max(map(len, in_words(np.zeros(500), np.ones(500), None))) <= 80
