"""The HTML page of a fit: headline, changed decisions, trials, costs of errors, settings."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from lodl._json import write_text
from lodl._typing import FilePath
from lodl.report import plots
from lodl.report._result import ChangedDecision, FitResult, amounts, in_unit, number_cells
from lodl.report._tables import Evaluation
from lodl.report.page import Block, Cell, Headline, Section, Table, duration, render
from lodl.report.plots import BASELINE_COLOUR, SELECTED_COLOUR, WORSE_COLOUR
from lodl.report.style import inline_svg, new_figure, style

__all__ = ["write_page"]

_WIDTH = 4.2  # inches of a figure, about the width of a phone
_CAVEAT = (
    "These instances selected the model, so expect a little less on new ones. For a figure on new "
    "data, pass features and labels that the fit did not see to `model.report` or `lodl report`."
)
_ON_NEW_DATA = "None of these instances trained or selected a model."
_GAIN_TEXT = (
    "This model and simpler ways to predict, on the same instances. The dot is the regret that "
    "this model avoids per instance, the line its 95% interval: right of zero, it decides better."
)
_NAMES_TEXT = (
    "The plain model is the estimator fitted as usual; squared error is the same kind of model, "
    "trained here; corrected, it has the best simple shift or pull towards the mean. "
)
_TRIALS_TEXT = (
    "Every model that was scored, by its decisions on instances it was not trained on. One was "
    "selected by these decisions, so its regret looks a little better here than on new data."
)
_FOOTER = (
    "Regret is how much worse a decision is than the best decision in hindsight. It is measured "
    "under the true label, on instances that the model was not trained on. The model was trained "
    "for the constraints of its training data: evaluate it again before you change a capacity, a "
    "budget or a network."
)


def write_page(result: FitResult, path: FilePath, evaluation: Evaluation | None = None) -> Path:
    """Write the HTML page of a fit, one file that needs only a browser; return its path."""
    return write_text(Path(path), fit_page(result, evaluation))


def fit_page(result: FitResult, evaluation: Evaluation | None = None) -> str:
    """Return the HTML of the page, which leads with an evaluation on new data if there is one."""
    shown = evaluation or Evaluation.of_fit(result)
    sections = [_gain_section(shown), _changes_section(result)] if shown.optimum else []
    sections.append(_trials_section(result))
    model = result.model if "(" in result.model else result.model[:1].upper() + result.model[1:]
    fitted = f", fitted on {result.created.partition(' ')[0]}" if result.created else ""
    return render(
        title=title_of(result.problem),
        scope=f"{model}{fitted}. Validation: {result.validation}",
        headline=_headline(result, shown),
        sections=[*sections, _settings_section(result)],
        footer=_FOOTER,
    )


def _headline(result: FitResult, shown: Evaluation) -> Headline:
    of_fit = shown.kind == "validation"
    cost = f"The fit took {result.n_calls:,} solver calls and {duration(result.seconds)}."
    text = f"{result.verdict if of_fit else shown.verdict} {cost}"
    if not shown.optimum:
        return Headline("Regret per instance", "not known", text, "")
    where = f"{len(shown.optimum):,} {shown.kind} instances"
    kicker = f"Regret per instance on {where}: {shown.reference} → this model"
    label = f"Mean regret of each way to predict: {shown.headline}"
    (svg,) = _svg("regrets", shown, label, height=0.32 * len(shown.regrets) + 0.75)
    return Headline(kicker, shown.headline, text, svg, _CAVEAT if of_fit else _ON_NEW_DATA)


@style()
def _svg(name: str, result: FitResult | Evaluation, label: str, height: float = 2.8) -> tuple[str]:
    """Return the figure that has this name in `plots`."""
    figure = new_figure(_WIDTH, height)
    getattr(plots, name)(result, ax=figure.subplots())
    return (inline_svg(figure, name, label=label),)


def _gain_section(shown: Evaluation) -> Section:
    *others, _ = shown.regrets
    table = shown.table()
    verdicts = map(Cell, [*map(shown.compared, others), ""])
    rows = tuple((*row, verdict) for row, verdict in zip(table.rows, verdicts, strict=True))
    columns = (*table.columns, "this model is")
    label = f"Regret that this model avoids: {shown.verdict}"
    figure = Block(svgs=_svg("gain", shown, label, height=0.36 * len(others) + 0.75))
    block = Block(tables=(Table(table.caption, columns, rows, is_stacked=True),))
    text = f"{_GAIN_TEXT} {_NAMES_TEXT if len(others) > 1 else ''}{table.caption}"
    return Section("gain", "Is the difference real?", text, (block,), figure)


def _changes_section(result: FitResult) -> Section:
    change = np.array(result.regret_baseline) - np.array(result.regret_selected)
    better, worse = int((change > 0).sum()), int((change < 0).sum())
    same, unit = len(change) - better - worse, in_unit(result.unit)
    gained, lost = amounts(change[change > 0].sum(), -change[change < 0].sum())
    text = (
        f"Of {len(change):,} validation decisions, {better:,} {_are(better)} better than with a "
        f"model trained on squared error, by {gained}{unit} in total; {worse:,} "
        f"{_are(worse)} worse, by {lost}{unit}; and {same:,} {_are(same)} worth the same."
    )
    label = f"Regret avoided by instance: {better} better, {worse} worse, {same} the same"
    key = (("better", SELECTED_COLOUR), ("worse", WORSE_COLOUR))
    improved = [row for row in result.changes if row.regret_selected < row.regret_baseline]
    others = [row for row in result.changes if row.regret_selected >= row.regret_baseline]
    blocks = tuple(
        Block(f"{title}, {result.unit}" if unit else title, tables=(_changes_table(title, rows),))
        for title, rows in (("Improved most", improved), ("Got worse most", others))
        if rows
    )
    figure = Block(svgs=_svg("changes", result, label), key=key)
    return Section("decisions", "Decisions that changed", text, blocks, figure)


def _changes_table(caption: str, changes: Sequence[ChangedDecision]) -> Table:
    pairs = [(row.regret_baseline, row.regret_selected) for row in changes]
    cells = number_cells(value for a, b in pairs for value in (a, b, a - b))
    texts = ((row.instance, row.decision_baseline, row.decision_selected) for row in changes)
    rows = tuple((*map(Cell, row), *islice(cells, 3)) for row in texts)
    decisions = ("squared error decides", "this model decides")
    columns = ("instance", *decisions, "regret before", "regret now", "avoided")
    return Table(caption, columns, rows, is_stacked=True)


def _trials_section(result: FitResult) -> Section:
    table, rows = result.table(), []
    for i, (trial, (name, *numbers)) in enumerate(zip(result.trials, table.rows, strict=True)):
        colour = BASELINE_COLOUR if trial.is_baseline else SELECTED_COLOUR
        mark = Cell("selected" if i == result.selected else "")
        rows.append((replace(name, colour=colour), *numbers, mark))
    whole = Table(table.caption, (*table.columns, ""), tuple(rows), is_stacked=True)
    blocks, remarks = (Block(tables=(whole,)),), " ".join(result.remarks())
    text = f"{_TRIALS_TEXT} Selected: {result.selected_name}. {remarks}"
    return Section("trials", "Models that were tried", text, blocks, is_detail=True)


def _settings_section(result: FitResult) -> Section:
    run = {"date": result.created, "command": result.command, "problem": result.problem}
    settings = {n: "default" if v is None else str(v) for n, v in result.settings.items()}
    tables = {
        "Run": {name: text for name, text in run.items() if text},
        "Learner": settings,
        "Estimator": result.estimator,
        "Versions": result.versions,
    }
    blocks = tuple(
        Block(title, tables=(Table(title, (), tuple((Cell(n), Cell(v)) for n, v in rows.items())),))
        for title, rows in tables.items()
        if rows
    )
    return Section("settings", "How it was made", "", blocks, is_detail=True)


def title_of(problem: str) -> str:
    """Return a problem as a title: "Web Advertising" for "WebAdvertising(budget=2)"."""
    made = re.match(r"(?:problem|\w+Problem)\((?:build_|make_|solve_)?(\w+)[,)]", problem)
    if made and made[1] not in ("build", "make", "model", "solve", "unknown"):  # by name
        return made[1].replace("_", " ").capitalize()
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", problem.partition("(")[0])


def _are(n: int) -> str:
    return "is" if n == 1 else "are"
