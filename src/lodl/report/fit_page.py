"""The HTML page of a fit: headline, changed decisions, trials, costs of errors, settings."""

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from lodl._json import write_text
from lodl.report import plots
from lodl.report._result import ChangedDecision, FitResult, amounts
from lodl.report.page import Block, Cell, Headline, Section, Table, render, shortened
from lodl.report.plots import BASELINE_COLOUR, MAX_COORDINATES, SELECTED_COLOUR, WORSE_COLOUR
from lodl.report.style import inline_svg, new_figure, style

__all__ = ["write_page"]

_MAX_SETTING = 80  # characters
_FIDELITY_TEXT = (
    "Does the learned loss agree with the true regret where the model predicts? Each point is a "
    "validation instance. A good loss rises with the regret; the order matters, not the height. A "
    "convex loss is too high in places: true regret levels off once the decision stops changing, "
    "and no convex curve can do that."
)
_TRIALS_TEXT = (
    "Every model that was scored, by its decisions on instances it was not trained on. The line "
    "follows the best so far; the ring marks the selected model. It was selected by these same "
    "decisions, so its regret looks a little better here than it will on new data."
)
_COORDINATES_TEXT = (
    "The cost of an error, according to the learned loss, if one number alone is predicted one "
    "standard deviation too high (right) or too low (left), averaged over instances. Squared error "
    "would charge both sides alike."
)
_FOOTER = (
    "Regret is how much more a decision costs than the best decision in hindsight. It is measured "
    "under the true label, on validation instances, which the model was not trained on."
)


def write_page(result: FitResult, path: str | PathLike[str]) -> Path:
    """Write the HTML page of a fit, one file that needs only a browser; return its path."""
    return write_text(Path(path), fit_page(result))


def fit_page(result: FitResult) -> str:
    """Return the HTML of the page."""
    sections = [_changes_section(result), _trials_section(result)]
    if result.coordinates is not None:
        sections.append(_coordinates_section(result, len(result.coordinates.names)))
    if result.loss_selected:
        figure = Block(svgs=_svg("fidelity", result, "Learned loss against true regret"))
        title = "Does the loss tell the truth?"
        sections.append(Section("fidelity", title, _FIDELITY_TEXT, beside=figure))
    height, model = 2.1 if result.has_plain else 1.7, result.model
    model = model if "(" in model else model[:1].upper() + model[1:]
    return render(
        title=title_of(result.problem),
        scope=f"{model}. Validation: {result.validation}",
        headline=Headline(
            kicker="Regret per instance, compared with perfect foresight",
            number=result.headline,
            text=f"{result.verdict} It took {result.n_calls:,} solver calls and "
            f"{_duration(result.seconds)}.",
            svg=_svg("gain", result, f"Mean regret {result.headline}", 5.2, height)[0],
        ),
        sections=[*sections, _settings_section(result)],
        footer=_FOOTER,
    )


@style()
def _svg(
    name: str, result: FitResult, label: str, width: float = 4.6, height: float = 3.0
) -> tuple[str]:
    """Return the figure that has this name in `plots`."""
    figure = new_figure(width, height)
    getattr(plots, name)(result, ax=figure.subplots())
    return (inline_svg(figure, name, label=label),)


def _changes_section(result: FitResult) -> Section:
    change = np.array(result.regret_baseline) - np.array(result.regret_selected)
    better, worse = int((change > 0).sum()), int((change < 0).sum())
    same = len(change) - better - worse
    gained, lost = amounts(change[change > 0].sum(), -change[change < 0].sum())
    text = (
        f"Of {len(change):,} validation decisions, {better:,} {_are(better)} better than with a "
        f"model trained on squared error, by {gained}{result.in_unit} in total; {worse:,} "
        f"{_are(worse)} worse, by {lost}{result.in_unit}; and {same:,} {_are(same)} worth the same."
    )
    label = f"Regret avoided by instance: {better} better, {worse} worse, {same} the same"
    key = (("better", SELECTED_COLOUR), ("worse", WORSE_COLOUR))
    improved = [row for row in result.changes if row.regret_selected < row.regret_baseline]
    others = [row for row in result.changes if row.regret_selected >= row.regret_baseline]
    blocks = tuple(
        Block(title, tables=(_changes_table(title, rows),))
        for title, rows in (("Improved most", improved), ("Got worse most", others))
        if rows
    )
    figure = Block(svgs=_svg("changes", result, label), key=key)
    return Section("decisions", "Decisions that changed", text, blocks, figure)


def _changes_table(caption: str, changes: Sequence[ChangedDecision]) -> Table:
    values = [
        (row.regret_baseline, row.regret_selected, row.regret_baseline - row.regret_selected)
        for row in changes
    ]
    texts = iter(amounts(*(value for row in values for value in row)))  # all with the same decimals
    rows = tuple(
        (
            Cell(row.instance),
            *(Cell(next(texts), value) for value in numbers),
            Cell(row.decision_baseline),
            Cell(row.decision_selected),
        )
        for row, numbers in zip(changes, values, strict=True)
    )
    columns = ("instance", "regret before", "after", "avoided", "decision before", "decision after")
    return Table(caption, columns, rows)


def _trials_section(result: FitResult) -> Section:
    regrets = amounts(*(trial.regret for trial in result.trials))
    rows = tuple(
        (
            Cell(trial.name, colour=BASELINE_COLOUR if trial.is_baseline else SELECTED_COLOUR),
            Cell(regrets[i], trial.regret),
            Cell.of_number(trial.round, "{:d}"),
            Cell.of_number(trial.n_calls, "{:,}"),
            Cell.of_number(trial.seconds, "{:.1f}"),
            Cell("selected" if i == result.selected else ""),
        )
        for i, trial in enumerate(result.trials)
    )
    columns = ("trained on", "regret", "round", "calls", "seconds", "")
    table = Block(tables=(Table("Trials", columns, rows),))
    text = f"{_TRIALS_TEXT} Selected: {result.selected_name}."
    label = f"Validation regret of {len(rows)} models against solver calls"
    return Section("trials", "Trials", text, (table,), Block(svgs=_svg("trials", result, label)))


def _coordinates_section(result: FitResult, n: int) -> Section:
    n_shown = min(n, MAX_COORDINATES)
    more = f" Shown are the {n_shown} costliest of {n} numbers." if n_shown < n else ""
    label = f"Learned loss of errors in the {n_shown} costliest numbers of a label"
    key = (("too high", WORSE_COLOUR), ("too low", SELECTED_COLOUR))
    figure = Block(svgs=_svg("coordinates", result, label, height=0.24 * n_shown + 0.9), key=key)
    return Section("errors", "Which errors matter", _COORDINATES_TEXT + more, beside=figure)


def _settings_section(result: FitResult) -> Section:
    settings = {
        name: "default" if value is None else shortened(str(value), _MAX_SETTING)
        for name, value in result.settings.items()
    }
    blocks = []
    for title, caption, pairs in (
        ("Learner", "Settings of the learner", settings),
        ("Versions", "Versions of packages", result.versions),
    ):
        rows = tuple((Cell(name), Cell(value)) for name, value in pairs.items())
        blocks.append(Block(title, tables=(Table(caption, (), rows),)))
    return Section("settings", "Settings", "", tuple(blocks))


def title_of(problem: str) -> str:
    """Return a problem as a title: "Web Advertising" for "WebAdvertising(budget=2)"."""
    name, _, arguments = problem.partition("(")
    if name == "problem" and arguments:  # made of functions, the first of which solves
        name = arguments.partition(",")[0]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} h"
