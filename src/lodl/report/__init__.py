"""The result of a fit as plain data, its page, its figures, and comparisons of results.

Importing this package needs neither matplotlib nor jinja2. These modules do: `lodl.report.fit_page`
writes the page of a fit, `lodl.report.plots` draws its figures for notebooks, and
`lodl.report.parts` has the parts of other pages.
"""

from lodl.report._comparison import Comparison
from lodl.report._evaluation import Evaluation, EvaluationRow
from lodl.report._html import Cell, Table
from lodl.report._records import (
    BASELINE,
    PLAIN,
    ChangedDecision,
    CoordinateCosts,
    Estimate,
    Failures,
    Trial,
)
from lodl.report._result import FitResult

__all__ = [
    "BASELINE",
    "PLAIN",
    "Cell",
    "ChangedDecision",
    "Comparison",
    "CoordinateCosts",
    "Estimate",
    "Evaluation",
    "EvaluationRow",
    "Failures",
    "FitResult",
    "Table",
    "Trial",
]
