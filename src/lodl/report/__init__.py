"""The result of a fit as plain data, its page, its figures, and comparisons of results.

Importing this package needs neither matplotlib nor jinja2, but `lodl.report.fit_page` and
`lodl.report.plots` do. Other pages are made with `lodl.report.page` and `lodl.report.style`.
"""

from lodl.report._result import (
    BASELINE,
    BY_THE_SOLVER,
    MEAN_LABEL,
    PLAIN,
    ChangedDecision,
    Estimate,
    Failures,
    FitResult,
    Trial,
)
from lodl.report._tables import Comparison, Evaluation
from lodl.report.page import Cell, Table

__all__ = [
    "BASELINE",
    "BY_THE_SOLVER",
    "MEAN_LABEL",
    "PLAIN",
    "Cell",
    "ChangedDecision",
    "Comparison",
    "Estimate",
    "Evaluation",
    "Failures",
    "FitResult",
    "Table",
    "Trial",
]
