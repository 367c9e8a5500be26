"""The section that shows how faithful learned losses are."""

import math
from collections.abc import Iterable, Sequence

from lodl.report import Cell, Table
from lodl.report.page import Block, Section
from lodl_benchmarks.pages._draw import method_colours
from lodl_benchmarks.pages._mean_std import MeanStd, mean_cell
from lodl_benchmarks.pages._results import Result, Results

FIDELITY_TITLE = "How faithful the learned losses are"
FIDELITY_TEXT = (
    "Mean absolute difference between learned loss and true regret: on held-out samples around the "
    "labels, and at the predictions of the models trained on it, which is where a loss is used."
)
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def fidelity_section(results: Results) -> Section | None:
    """Return the errors of the learned losses, in the unit of the objective."""
    blocks = []
    for domain, compared in results.compared.items():
        learned = [result for result in compared if result.empirical_error is not None]
        if learned:
            title = results.title_of(domain)
            blocks.append(Block(title, tables=(_errors_table(title, learned),)))
    if not blocks:
        return None
    return Section("fidelity", FIDELITY_TITLE, FIDELITY_TEXT, tuple(blocks))


def _errors_table(title: str, results: Sequence[Result]) -> Table:
    colours = method_colours(result.method for result in results)
    predictions = _power_of_ten(result.empirical_error for result in results)
    labels = _power_of_ten(result.gaussian_error for result in results)
    rows = tuple(
        (
            Cell(result.method, colour=colours[result.method]),
            _cell(result.empirical_error, predictions),
            _cell(result.gaussian_error, labels),
            mean_cell(result.quality),
        )
        for result in results
    )
    columns = (
        "learned loss",
        f"at predictions{_in_words(predictions)}",
        f"around labels{_in_words(labels)}",
        "quality",
    )
    return Table(f"Mean absolute errors of learned losses in {title}", columns, rows)


def _power_of_ten(errors: Iterable[MeanStd | None]) -> int:
    """Return the power to divide a column by, so that two decimals show its largest mean."""
    largest = max((abs(error.mean) for error in errors if error is not None), default=0.0)
    power = math.floor(math.log10(largest)) if largest > 0 else 0
    return 0 if -1 <= power <= 2 else power


def _in_words(power: int) -> str:
    return f", x 10{str(power).translate(_SUPERSCRIPTS)}" if power else ""


def _cell(error: MeanStd | None, power: int) -> Cell:
    return mean_cell(None if error is None else error.times(10.0**-power))
