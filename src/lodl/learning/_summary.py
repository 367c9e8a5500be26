"""The summary of a fitted model: verdict, models tried, cost."""

from collections.abc import Sequence
from textwrap import fill

from lodl._arrays import printable
from lodl.learning._fitted import Fitted
from lodl.learning._search import HistoryRow
from lodl.report._text import amounts

_WIDTH = 80
_GAP = "  "
_MANY = 8  # names of labels


def summary_of(model: Fitted) -> str:
    """Return the summary of a fitted model, at most 80 columns wide."""
    judged = f"Judged on held-out decisions: {model.judged_by_}."
    if model.gain_.difference > 0:
        judged += " Expect somewhat less on new instances, because the same decisions chose."
    paragraphs = [
        f"{model.gain_.verdict} {judged}",
        f"Kept: {model.chosen_}.{_why(model)}",
        f"Cost: {model.n_oracle_calls_:,} solver calls, {model.seconds_:.3g} s.",
    ]
    if model.label_names_ is not None:
        names = list(model.label_names_)
        if len(names) > _MANY:
            names = [f"{len(names)} numbers: {names[0]}, {names[1]}, ... {names[-1]}"]
        paragraphs.append(f"Predicts {', '.join(names)}.")
    lines = [fill(printable(paragraph), _WIDTH) for paragraph in paragraphs]
    return "\n".join([*lines, "", *_table(model.history_)])


def _why(model: Fitted) -> str:
    """Return what may surprise in the table, in sentences."""
    best = min(model.history_, key=lambda row: row.regret)
    why = ""
    if model.chosen_.startswith("average") and not best.name.startswith("average"):
        why += " A single loss is kept only if it is clearly better."
    if model.kept_ == 0:
        why += " That is a constant: what can be predicted here does not help to decide."
    if model.judge == "pool":
        why += " The table is by the cheapest decisions known, what is said above by the solver."
    return why


def _table(history: Sequence[HistoryRow]) -> list[str]:
    """Return a row for each model; its name comes last, where it has room to go on."""
    regrets = amounts(*(row.regret for row in history))
    rows = [("regret", "round", "calls", "seconds", "trained on")]
    rows += [
        (regret, str(row.round), f"{row.n_calls:,}", f"{row.seconds:.1f}", row.name)
        for row, regret in zip(history, regrets, strict=True)
    ]
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    lines = []
    for *numbers, name in rows:
        texts = (text.rjust(width) for text, width in zip(numbers, widths, strict=True))
        start = f"{_GAP.join(texts)}{_GAP}"
        more = " " * (len(start) + 2)
        lines.append(fill(f"{start}{printable(name)}", _WIDTH, subsequent_indent=more))
    return lines
