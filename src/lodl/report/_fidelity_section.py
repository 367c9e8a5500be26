"""The section that shows how faithful learned losses are: the paper's table 3."""

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lodl.paper import ERROR_UNITS, ErrorUnit, MeanStd
from lodl.report._blocks import Block, Cell, Section, Table, beside, number, svg_of
from lodl.report._draw_fidelity import draw_fidelity
from lodl.report._folder import read_info, shown
from lodl.report._result_sections import domain_id
from lodl.report._results import Result, Results, RunValues
from lodl.report._style import method_colours

_ERRORS = {"empirical": "at predictions", "gaussian": "around labels"}
_POINTS = {"of_methods": "means of losses", "of_runs": "all runs", "of_paper": "the paper's means"}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def fidelity_section(folder: Path, results: Results) -> Section | None:
    """Returns how faithful learned losses are: from `table3.json`, or else from the rows."""
    info = read_info(folder, "table3")
    if info is None:
        domains = dict(_domains_of_rows(results))
        blocks = [_errors_block(domain) for domain in domains.values()]
    else:
        with shown(folder, "table3"):
            domains = info["domains"]
            blocks = [_drawn_block(*item) for item in domains.items()]
    if not blocks:
        return None
    text = (
        "Mean absolute difference between learned loss and true regret: on held-out samples "
        "around the labels, and at the predictions of the models trained on it. The second "
        "is where a loss is used; the paper finds that it tells decision quality."
    )
    has_paper = any(_has_paper(domain) for domain in domains.values())
    text += " In brackets the paper's figures." if has_paper else ""
    title = "How faithful the learned losses are"
    return Section("fidelity", title, text, tuple(blocks))


def _has_paper(domain: Mapping[str, Any]) -> bool:
    return any(method["paper"] is not None for method in domain["methods"].values())


def _domains_of_rows(results: Results) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the domains as `table3.json` has them, without what only a figure needs."""
    for name, compared in results.compared.items():
        unit = ERROR_UNITS.get(name) if name in results.reproduced else None
        unit = unit or ErrorUnit()
        methods = {r.method: _errors_of(r, unit) for r in compared if r.empirical_error is not None}
        if methods:
            yield name, {"title": results.title_of(name), "unit": unit.name, "methods": methods}


def _errors_of(result: Result, unit: ErrorUnit) -> dict[str, Any]:
    return {
        "gaussian": _scaled(result.gaussian_error, unit.factor),
        "empirical": _scaled(result.empirical_error, unit.factor),
        "quality": _scaled(result.quality, 1.0),
        "paper": None,
    }


def _scaled(values: RunValues | None, factor: float) -> dict[str, float] | None:
    return None if values is None else {"mean": factor * values.mean, "std": factor * values.std}


def _drawn_block(name: str, domain: Mapping[str, Any]) -> Block:
    label = f"Decision quality against the errors of learned losses in {domain['title']}"
    figure = draw_fidelity({"domains": {name: {**domain, "title": ""}}})
    svgs = (svg_of(figure, f"fidelity-{domain_id(name)}", label=label),)
    tables = tuple(t for t in (_errors_table(domain), _trends_table(domain)) if t.rows)
    return Block(_title(domain), svgs, tables=tables, is_wide=True)


def _errors_block(domain: Mapping[str, Any]) -> Block:
    return Block(_title(domain), tables=(_errors_table(domain),))


def _title(domain: Mapping[str, Any]) -> str:
    return f"{domain['title']}, errors in {domain['unit']}"


def _errors_table(domain: Mapping[str, Any]) -> Table:
    methods = domain["methods"]
    colours = method_colours(methods)
    powers = {name: _power_of_ten(errors[name] for errors in methods.values()) for name in _ERRORS}
    rows = tuple(
        (
            Cell(method, colour=colours[method]),
            *(_cell(errors, name, power) for name, power in powers.items()),
            _cell(errors, "quality", 0),
        )
        for method, errors in sorted(methods.items(), key=lambda item: -item[1]["quality"]["mean"])
    )
    titles = (f"{title}{_in_words(powers[name])}" for name, title in _ERRORS.items())
    caption = f"Mean absolute errors of learned losses in {domain['title']}, in {domain['unit']}"
    return Table(caption, ("learned loss", *titles, "quality"), rows)


def _power_of_ten(errors: Iterable[Mapping[str, float] | None]) -> int:
    """Returns what a column is divided by so that two decimals tell its largest mean."""
    largest = max((abs(error["mean"]) for error in errors if error is not None), default=0.0)
    power = math.floor(math.log10(largest)) if largest > 0 else 0
    return 0 if -1 <= power <= 2 else power


def _in_words(power: int) -> str:
    return f", x 10{str(power).translate(_SUPERSCRIPTS)}" if power else ""


def _cell(errors: Mapping[str, Any], name: str, power: int) -> Cell:
    ours, paper = errors[name], errors["paper"]
    if ours is None:
        return Cell("")
    return beside(_divided(ours, power), None if paper is None else _divided(paper[name], power))


def _divided(figure: Mapping[str, float], power: int) -> MeanStd:
    return MeanStd(figure["mean"] * 10.0**-power, figure["std"] * 10.0**-power)


def _trends_table(domain: Mapping[str, Any]) -> Table:
    """Returns the straight lines of quality on the error at predictions, and on that at labels."""
    at_predictions, around_labels = (domain["trends"][name] for name in _ERRORS)
    rows = tuple(
        (
            Cell(title),
            number(line["correlation"]),
            _intercept(line),
            number(_correlation(around_labels.get(name))),
        )
        for name, title in _POINTS.items()
        if (line := at_predictions.get(name)) is not None
    )
    correlations = (f"correlation {title}" for title in _ERRORS.values())
    columns = ("line through", next(correlations), "quality at no error [95 %]", next(correlations))
    return Table(f"Quality as a straight line in the error, {domain['title']}", columns, rows)


def _correlation(line: Mapping[str, float] | None) -> float | None:
    return None if line is None else line["correlation"]


def _intercept(line: Mapping[str, Any]) -> Cell:
    interval = line["intercept_95"]
    text = "" if interval is None else " [{:z.2f}, {:z.2f}]".format(*interval)
    return Cell(f"{line['intercept']:z.2f}{text}", line["intercept"])
