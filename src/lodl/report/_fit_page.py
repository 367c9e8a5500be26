"""The page that shows one `fit`."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from lodl._fit_record import ChangedDecision, FitRecord
from lodl._json_file import write_text
from lodl.report._blocks import Block, Section, svg_of
from lodl.report._draw_fit import (
    GAINED,
    KEPT,
    TWO_STAGE,
    draw_changes,
    draw_coordinates,
    draw_fidelity,
    draw_gain,
    draw_history,
)
from lodl.report._page import Headline, render
from lodl.report._slices import section_of_slices
from lodl.report._style import new_figure, style
from lodl.report._table import Cell, Table

_BOUND_TEXT = (
    "Is the learned loss faithful where the model predicts? A point is a held-out instance. Good "
    "losses rise with the regret: what counts is the order, not the height. A convex loss must "
    "lie above the truth somewhere, because true regret levels off where the decision stays the "
    "same, and no convex curve can."
)
_CANDIDATES_TEXT = (
    "Every model that was tried, judged by decisions for instances it was not trained on. The "
    "line is the best so far, the ring is what was kept. The choice was made by these very "
    "decisions, so the regret of the kept model is a little too good."
)
_FOOTER = (
    "Regret is what a decision costs more than the best one would have, scored under the true "
    "label. Held-out decisions are those for instances that a model was not trained on."
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
        section_of_slices(fit.slices) if fit.slices else None,
        _settings_section(fit),
    ]
    low, high = fit.gain_95
    difference = fit.mean_two_stage - fit.mean_kept
    return render(
        title=fit.problem,
        scope=f"{fit.model}, judged by held-out decisions: {fit.judged_by}",
        headline=Headline(
            kicker="Regret per instance",
            number=fit.headline(),
            text=f"{fit.verdict} The gain is {difference:.4g}{fit.in_unit} per instance, with a "
            f"95 % interval from {low:.4g} to {high:.4g}. It took {fit.n_calls:,} oracle calls "
            f"and {_duration(fit.seconds)}.",
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
    text = (
        f"Of {len(change):,} held-out decisions, {better:,} are better than those of squared error "
        f"(together worth {change[change > 0].sum():.4g}{fit.in_unit}), {worse:,} are worse "
        f"({-change[change < 0].sum():.4g}{fit.in_unit}), and {same:,} are worth the same."
    )
    label = f"Regret avoided by instance: {better} better, {worse} worse, {same} the same"
    figure = _svg(draw_changes, fit, "changes", label)
    key = (("better", GAINED), ("worse", KEPT))
    best = tuple(one for one in fit.changes if one.regret_kept < one.regret_two_stage)
    worst = tuple(one for one in fit.changes if one.regret_kept > one.regret_two_stage)
    blocks = [Block("", (figure,), key, is_wide=True)]
    blocks += [
        Block(title, tables=(_changes_table(title, some),))
        for title, some in (("What became better", best), ("What became worse", worst))
        if some
    ]
    return Section("decisions", "Decisions that changed", text, tuple(blocks))


def _changes_table(caption: str, changes: tuple[ChangedDecision, ...]) -> Table:
    rows = tuple(
        (
            Cell(one.instance),
            Cell.of_number(one.regret_two_stage - one.regret_kept, "{:+.4g}"),
            Cell.of_number(one.regret_two_stage, "{:.4g}"),
            Cell.of_number(one.regret_kept, "{:.4g}"),
            Cell(one.two_stage),
            Cell(one.kept),
        )
        for one in changes
    )
    columns = (
        "instance",
        "regret avoided",
        "before",
        "after",
        "decision before",
        "decision after",
    )
    return Table(caption, columns, rows)


def _candidates_section(fit: FitRecord) -> Section:
    rows = tuple(
        (
            Cell(one.name, colour=TWO_STAGE if one.name.startswith("2-stage") else KEPT),
            Cell.of_number(one.round, "{:d}"),
            Cell.of_number(one.regret, "{:.4g}"),
            Cell.of_number(one.n_calls, "{:,}"),
            Cell.of_number(one.seconds, "{:.1f}"),
            Cell("kept" if one is _kept(fit) else ""),
        )
        for one in fit.history
    )
    columns = ("trained on", "round", "held-out regret", "calls so far", "seconds so far", "")
    table = Table("Models that were tried", columns, rows)
    label = f"Held-out regret of {len(rows)} models against oracle calls"
    figure = _svg(draw_history, fit, "history", label)
    return Section(
        "candidates",
        "What was tried",
        f"{_CANDIDATES_TEXT} Kept: {fit.chosen}.",
        (Block("", (figure,), tables=(table,), is_wide=True),),
    )


def _kept(fit: FitRecord) -> object:
    return next((one for one in reversed(fit.history) if one.name == fit.chosen), None)


def _coordinates_section(fit: FitRecord) -> Section | None:
    if fit.coordinates is None:
        return None
    shown = min(len(fit.coordinates.names), 20)
    text = (
        "What the learned loss charges for an error of one standard deviation in one coordinate "
        "alone, on average over instances: too high to the right, too low to the left. Squared "
        "error would charge the same for all of them, in both directions."
    )
    if shown < len(fit.coordinates.names):
        text += f" The {shown} costliest of {len(fit.coordinates.names)} coordinates are shown."
    label = f"Learned loss of errors in the {shown} costliest coordinates"
    figure = _svg(draw_coordinates, fit, "coordinates", label, 4.6, 0.24 * shown + 0.9)
    key = (("too high", KEPT), ("too low", GAINED))
    return Section("errors", "Which errors matter", text, (Block("", (figure,), key),))


def _fidelity_section(fit: FitRecord) -> Section | None:
    if fit.coordinates is None:
        return None
    label = "Learned loss against true regret at held-out predictions"
    figure = _svg(draw_fidelity, fit, "fidelity", label)
    return Section("fidelity", "Faithfulness", _BOUND_TEXT, (Block("", (figure,)),))


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


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} h"
