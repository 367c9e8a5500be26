from types import SimpleNamespace

import numpy as np
import pytest

from lodl.learning import Gain, HistoryRow
from lodl.learning._summary import _why, summary_of


def summary(**changes):
    model = {
        "problem": SimpleNamespace(unit="EUR"),
        "gain_": Gain(6.48, 2.19, 3.9, 4.7, 300, unit="EUR"),
        "judge": "solver",
        "kept_": 1.0,
        "judged_by_": "300 instances, 5 folds",
        "chosen_": "DecisionHinges()",
        "n_oracle_calls_": 10,
        "seconds_": 0.1,
        "label_names_": None,
        "history_": [HistoryRow("DecisionHinges()", 0, 2.19, 10, 0.1)],
    }
    return summary_of(SimpleNamespace(**model | changes))


def test_the_summary_leads_with_what_to_do_in_the_objectives_unit():
    assert (
        summary()
        .replace("\n", " ")
        .startswith(
            "Use this model: regret 6.48 -> 2.19 EUR per instance (-66%, 95% interval of the gain "
            "3.90 to 4.70). Judged on held-out decisions: 300 instances, 5 folds."
        )
    )


@pytest.mark.parametrize(
    "gain",
    [
        Gain(6.48, 6.0, -1, 2, 300),
        Gain(0.0, 0.0, 0, 0, 300),
        Gain.of(np.zeros(20), np.full(20, -1.0)),
        Gain.of(np.ones(1), np.zeros(1)),
    ],
    ids=["perhaps", "none", "inexact", "one instance"],
)
def test_the_summary_leads_with_the_verdict_whatever_it_is(gain):
    text = summary(gain_=gain).replace("\n", " ")
    assert text.startswith(gain.verdict)
    assert "inf" not in text
    assert "--" not in text


def test_the_summary_fits_a_terminal():
    name = "average of DecisionRanking(temperature=0.3) and DecisionHinges(margin=1.0), 50% of it"
    lines = summary(
        gain_=Gain(123456.7, 98765.4, -3.9, 4.7, 300, unit="thousand EUR"),
        judge="pool",
        chosen_=name,
        n_oracle_calls_=123_456_789,
        seconds_=12345.6,
        label_names_=tuple(f"town {i}" for i in range(40)),
        history_=[HistoryRow("2-stage", 0, 1.5, 10, 0.1), HistoryRow(name, 3, 1e-7, 10**8, 1e4)],
    ).splitlines()
    assert max(map(len, lines)) <= 80
    first = lines.index("") + 2
    assert lines[first].split() == ["1.50", "0", "10", "0.1", "2-stage"]
    assert " ".join("".join(lines[first + 1 :]).split()).endswith(name)


def test_the_summary_says_what_may_surprise():
    rows = [HistoryRow("DecisionHinges()", 2, 0.8, 10, 0.1), HistoryRow("average", 2, 0.9, 10, 0.1)]
    model = SimpleNamespace(history_=rows, chosen_="average of 2 losses", judge="pool", kept_=0.0)
    assert "That is a constant" in _why(model)
    assert _why(model).startswith(" A single loss is kept only if it is clearly better.")
    assert "by the solver" in _why(model)
    model = SimpleNamespace(
        history_=rows[1:], chosen_="average of 2 losses", judge="solver", kept_=1.0
    )
    assert _why(model) == ""
