"""A fitted model in a few lines: what to do, what it is worth, what was tried, what it cost."""

from collections.abc import Sequence
from textwrap import fill

from lodl.learning._fitted import Fitted
from lodl.learning._gain import Gain
from lodl.learning._search import HistoryRow

_WIDTH = 80
_NUMBERS = "{:>5}  {:>9}  {:>11}  {:>7}"  # of a row of the table


def summary_of(model: Fitted) -> str:
    """Return the summary of a fitted model, at most 80 columns wide."""
    unit = getattr(model.problem, "unit", "")
    paragraphs = [
        f"{headline(model.gain_, unit)} Judged by {model.judged_by_}.",
        f"Kept: {model.chosen_}.",
        f"Cost: {model.n_oracle_calls_:,} oracle calls, {model.seconds_:.3g} s.",
    ]
    if model.label_names_ is not None:
        paragraphs.append(f"Predicts {', '.join(model.label_names_)}.")
    lines = [fill(paragraph, _WIDTH) for paragraph in paragraphs]
    return "\n".join([*lines, "", *_table(model.history_)])


def headline(gain: Gain, unit: str = "") -> str:
    """Return what to do, and the regret per instance before and after, in the objective's unit."""
    counted = f" {unit}" if unit else ""
    if gain.difference <= 0:
        return (
            "Keep squared error: nothing to gain here. Its regret is "
            f"{gain.two_stage:.4g}{counted} per instance."
        )
    numbers = (
        f"regret {gain.two_stage:.4g} -> {gain.chosen:.4g}{counted} per instance "
        f"(-{100 * gain.difference / gain.two_stage:.0f} %, 95 % interval of the gain "
        f"{gain.low:.3g} to {gain.high:.3g})"
    )
    if gain.low > 0:
        return f"Use this model: {numbers}."
    return f"Perhaps use this model: {numbers}. It may be chance; more instances would tell."


def _table(history: Sequence[HistoryRow]) -> list[str]:
    room = _WIDTH - 2 - len(_NUMBERS.format("", "", "", ""))
    width = min(room, max(len(row.name) for row in history))
    lines = [f"{'model':{width}}  {_NUMBERS.format('round', 'regret', 'calls', 'seconds')}"]
    for row in history:
        name = row.name if len(row.name) <= width else f"{row.name[: width - 1]}…"
        numbers = (row.round, f"{row.regret:.4g}", f"{row.n_calls:,}", f"{row.seconds:.1f}")
        lines.append(f"{name:{width}}  {_NUMBERS.format(*numbers)}")
    return lines
