"""The page that shows one `fit`."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from lodl._amounts import amounts
from lodl._fit_record import ChangedDecision, FitRecord
from lodl._json import write_text
from lodl.report._blocks import Block, Section, svg_of
from lodl.report._draw_fit import (
    KEPT,
    TWO_STAGE,
    WORSE,
    draw_changes,
    draw_coordinates,
    draw_fidelity,
    draw_gain,
    draw_history,
)
from lodl.report._page import Headline, render
from lodl.report._style import new_figure, style
from lodl.report._table import Cell, Table

_BOUND_TEXT = (
    "Does the learned loss agree with the true regret where the model predicts? Each point is a "
    "held-out instance. A good loss rises with the regret; the order matters, not the height. A "
    "convex loss has to lie above the truth in places: true regret levels off once the decision "
    "stops changing, and no convex curve can do that."
)
_CANDIDATES_TEXT = (
    "Every model that was tried, judged by its decisions on instances it was not trained on. The "
    "line follows the best so far; the ring marks the model that was kept. The model was chosen "
    "by these same decisions, so its regret looks a little better here than it will on new data."
)
_FOOTER = (
    "Regret is how much more a decision costs than the best decision in hindsight. It is measured "
    "under the true label, on held-out instances: those the model was not trained on."
)


def write_fit_report(fit: FitRecord, path: str | Path) -> Path:
    """Write one HTML file that shows a `fit` and needs nothing but a browser.

    Args:
        fit: What to show.
        path: The file to write.

    Returns:
        The path of the page.
    """
    return write_text(Path(path), fit_page(fit))


def fit_page(fit: FitRecord) -> str:
    """Return the HTML of the page that shows a `fit`."""
    sections = [
        _changes_section(fit),
        _candidates_section(fit),
        _coordinates_section(fit),
        _fidelity_section(fit),
        _settings_section(fit),
    ]
    return render(
        title=title_of(fit.problem),
        scope=f"{_capital(fit.model)}, judged by held-out decisions: {fit.judged_by}",
        headline=Headline(
            kicker="Regret per instance, compared with perfect foresight",
            number=fit.headline(),
            text=f"{fit.gain.verdict} It took {fit.n_calls:,} solver calls and "
            f"{_duration(fit.seconds)}.",
            svg=_svg(draw_gain, fit, "gain", f"Mean regret {fit.headline()}", 5.2, 1.7),
        ),
        sections=[section for section in sections if section is not None],
        footer=_FOOTER,
    )


def _svg(
    draw: Callable[[Axes, FitRecord], None],
    fit: FitRecord,
    name: str,
    label: str,
    width: float = 4.6,
    height: float = 3.0,
) -> Markup:
    with style():
        figure = new_figure(width, height)
        draw(figure.subplots(), fit)
    return svg_of(figure, name, label=label)


def _changes_section(fit: FitRecord) -> Section:
    change = np.asarray(fit.regret_two_stage) - np.asarray(fit.regret_kept)
    better, worse = int((change > 0).sum()), int((change < 0).sum())
    same = len(change) - better - worse
    gained, lost = amounts(change[change > 0].sum(), -change[change < 0].sum())
    text = (
        f"Of {len(change):,} held-out decisions, {better:,} {_are(better)} better than those "
        f"of a model trained on squared error, by {gained}{fit.in_unit} in total; {worse:,} "
        f"{_are(worse)} worse, by {lost}{fit.in_unit}; and {same:,} {_are(same)} worth the same."
    )
    label = f"Regret avoided by instance: {better} better, {worse} worse, {same} the same"
    figure = _svg(draw_changes, fit, "changes", label)
    key = (("better", KEPT), ("worse", WORSE))
    best = tuple(one for one in fit.changes if one.regret_kept < one.regret_two_stage)
    worst = tuple(one for one in fit.changes if one.regret_kept > one.regret_two_stage)
    blocks = tuple(
        Block(title, tables=(_changes_table(title, some),))
        for title, some in (("Improved most", best), ("Got worse most", worst))
        if some
    )
    beside = Block("", (figure,), key)
    return Section("decisions", "Decisions that changed", text, blocks, beside)


def _changes_table(caption: str, changes: tuple[ChangedDecision, ...]) -> Table:
    rows = tuple(
        (Cell(one.instance), *numbers, Cell(one.two_stage), Cell(one.kept))
        for one, numbers in zip(changes, _regrets(changes), strict=True)
    )
    columns = (
        "instance",
        "regret before",
        "after",
        "avoided",
        "decision before",
        "decision after",
    )
    return Table(caption, columns, rows)


def _regrets(changes: Sequence[ChangedDecision]) -> list[tuple[Cell, ...]]:
    """Return regret before, after, and what was avoided, all with the same decimals."""
    values = [
        (one.regret_two_stage, one.regret_kept, one.regret_two_stage - one.regret_kept)
        for one in changes
    ]
    texts = amounts(*(value for row in values for value in row))
    return [
        tuple(Cell(text, value) for text, value in zip(texts[3 * i :], row, strict=False))
        for i, row in enumerate(values)
    ]


def _candidates_section(fit: FitRecord) -> Section:
    regrets = amounts(*(one.regret for one in fit.history))
    rows = tuple(
        (
            Cell(one.name, colour=TWO_STAGE if one.name.startswith("2-stage") else KEPT),
            Cell(regret, one.regret),
            Cell.of_number(one.round, "{:d}"),
            Cell.of_number(one.n_calls, "{:,}"),
            Cell.of_number(one.seconds, "{:.1f}"),
            Cell("kept" if one is _kept(fit) else ""),
        )
        for one, regret in zip(fit.history, regrets, strict=True)
    )
    columns = ("trained on", "held-out regret", "round", "calls so far", "seconds so far", "")
    table = Table("Models that were tried", columns, rows)
    label = f"Held-out regret of {len(rows)} models against solver calls"
    figure = _svg(draw_history, fit, "history", label)
    return Section(
        "candidates",
        "What was tried",
        f"{_CANDIDATES_TEXT} Kept: {fit.chosen}.",
        (Block("", tables=(table,)),),
        Block("", (figure,)),
    )


def _kept(fit: FitRecord) -> object:
    return next((one for one in reversed(fit.history) if one.name == fit.chosen), None)


def _coordinates_section(fit: FitRecord) -> Section | None:
    if fit.coordinates is None:
        return None
    shown = min(len(fit.coordinates.names), 20)
    text = (
        "What an error costs, according to the learned loss, when one number alone is predicted "
        "one standard deviation too high (right) or too low (left), averaged over instances. "
        "Squared error would charge both sides alike."
    )
    if shown < len(fit.coordinates.names):
        text += f" Shown are the {shown} costliest of {len(fit.coordinates.names)} numbers."
    label = f"Learned loss of errors in the {shown} costliest numbers of a label"
    figure = _svg(draw_coordinates, fit, "coordinates", label, 4.6, 0.24 * shown + 0.9)
    key = (("too high", WORSE), ("too low", KEPT))
    return Section("errors", "Which errors matter", text, beside=Block("", (figure,), key))


def _fidelity_section(fit: FitRecord) -> Section | None:
    if fit.coordinates is None:
        return None
    label = "Learned loss against true regret at held-out predictions"
    figure = _svg(draw_fidelity, fit, "fidelity", label)
    return Section(
        "fidelity", "Does the loss tell the truth?", _BOUND_TEXT, beside=Block("", (figure,))
    )


def _settings_section(fit: FitRecord) -> Section:
    settings, versions = (
        tuple((Cell(name), Cell(value)) for name, value in pairs.items())
        for pairs in (fit.settings, fit.versions)
    )
    return Section(
        "settings",
        "Settings",
        "",
        (
            Block("Learner", tables=(Table("Settings of the learner", (), settings),)),
            Block("Versions", tables=(Table("Versions of packages", (), versions),)),
        ),
    )


def title_of(problem: str) -> str:
    """Return a problem as a title: "Web Advertising" of "WebAdvertising(budget=2)"."""
    name, _, arguments = problem.partition("(")
    if name == "problem" and arguments:  # made of functions, the first of which solves
        name = arguments.partition(",")[0]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _capital(text: str) -> str:
    """Return a text with its first letter as a capital, unless it is code."""
    return text if "(" in text else text[:1].upper() + text[1:]


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} h"
