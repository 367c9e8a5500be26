from types import SimpleNamespace

from lodl.learning import Gain, HistoryRow
from lodl.learning._summary import _why, headline, summary_of


def test_the_summary_leads_with_what_to_do_in_the_objectives_unit():
    worth_it = headline(Gain(6.48, 2.19, 3.9, 4.7), "EUR")
    assert worth_it == (
        "Use this model: regret 6.48 -> 2.19 EUR per instance (-66%, 95% interval of the gain "
        "3.90 to 4.70)."
    )
    assert headline(Gain(6.48, 6.0, -1, 2)).startswith(
        "Perhaps use this model: regret 6.48 -> 6.00 "
    )
    assert headline(Gain(0.0, 0.0, 0, 0)) == (
        "Keep squared error: no clear gain here. Its regret is 0 per instance."
    )


def test_the_summary_fits_a_terminal():
    name = "average of DecisionRanking(temperature=0.3) and DecisionHinges(margin=1.0), 50% of it"
    model = SimpleNamespace(
        problem=SimpleNamespace(unit="thousand EUR"),
        gain_=Gain(123456.7, 98765.4, -3.9, 4.7),
        judge="pool",
        kept_=1.0,
        judged_by_="300 instances, 5 folds",
        chosen_=name,
        n_oracle_calls_=123_456_789,
        seconds_=12345.6,
        label_names_=tuple(f"town {i}" for i in range(40)),
        history_=[HistoryRow("2-stage", 0, 1.5, 10, 0.1), HistoryRow(name, 3, 1e-7, 10**8, 1e4)],
    )
    lines = summary_of(model).splitlines()
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
