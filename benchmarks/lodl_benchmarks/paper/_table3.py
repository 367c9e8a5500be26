"""Table 3: does the error of a learned loss predict the quality of decisions?

Each learned loss has an error around the labels, where it was sampled (the paper's Gaussian
neighbourhood), and one at the predictions of the models that were trained on it (the empirical
neighbourhood). The paper finds that decision quality falls in a straight line with the second, from
1 at no error, and does not depend on the first.

Losses made of decisions are not fitted to regrets but bound them. Their error at predictions, how
far they are from the regret, is shown beside the others and has no part in the lines.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from lodl.report import Cell, Table
from lodl_benchmarks.pages import MeanStd, Row, in_method_order, mean_cell, method_colours
from lodl_benchmarks.paper._published import DOMAINS, ERROR_UNITS, TABLE3, ErrorUnit
from lodl_benchmarks.paper._quality_table import with_lines

ERRORS = ("empirical", "gaussian")
"""The neighbourhoods in which errors are measured."""

_BEST = 1.0  # the decision quality of true labels: none is higher
_PUBLISHED = {"web": TABLE3}
_FACTORS = {"empirical": 100, "gaussian": 100, "quality": 1}
_ERROR_COLUMNS = (
    "error at predictions, x 10⁻²",
    "error around labels, x 10⁻²",
    "quality",
    "oracle calls",
)
_TREND_COLUMNS = (
    "straight line through",
    "error at predictions: correlation",
    "quality at no error, 95 % interval",
    "error around labels: correlation",
)
_POINTS = {
    "of_methods": "means of losses",
    "of_runs": "all runs",
    "of_paper": "the paper's means",
}


@dataclass(frozen=True)
class Trend:
    """A least-squares line of decision quality on an error, and its correlation."""

    slope: float  # the slope of the line
    intercept: float  # the quality at no error
    # Its 95 % interval, or None if the points are not independent.
    intercept_95: tuple[float, ...] | None
    correlation: float  # the correlation of the points
    n: int  # the number of points

    @property
    def is_shown(self) -> bool:
        """Whether there are enough points for the line to mean something."""
        return self.n >= 5


@dataclass(frozen=True)
class WithoutOne:
    """The method without which the correlation is the weakest: an outlier can make a line alone."""

    method: str
    correlation: float


@dataclass(frozen=True)
class Trends:
    """The lines of decision quality on one kind of error, or None if a line is not defined."""

    of_methods: Trend | None  # the line through the means of the methods
    without_one: WithoutOne | None  # what remains of it without one method
    of_runs: Trend | None  # the line through all runs
    of_paper: Trend | None  # the line through the means that the paper prints


@dataclass(frozen=True)
class MethodErrors:
    """The errors and the decision quality of one method."""

    empirical: MeanStd  # error at the models' predictions
    gaussian: MeanStd  # error around the labels
    quality: MeanStd  # normalised test decision quality
    runs: Mapping[str, tuple[float, ...]]  # the same three for every run
    paper: Mapping[str, MeanStd] | None  # the three published numbers, if there are any
    oracle_calls: float = 0.0  # calls of the solver per domain seed

    def mean_std(self, name: str) -> MeanStd:
        """Return "empirical", "gaussian" or "quality"."""
        number: MeanStd = getattr(self, name)
        return number


@dataclass(frozen=True)
class BoundErrors:
    """Distance of a bound of the regret from it at predictions, and its decision quality."""

    empirical: MeanStd
    quality: MeanStd
    oracle_calls: float = 0.0


@dataclass(frozen=True)
class DomainErrors:
    """The errors of one domain, in a unit, and the lines of quality on each kind of error."""

    title: str
    unit: str
    methods: Mapping[str, MethodErrors]
    trends: Mapping[str, Trends]
    bounds: Mapping[str, BoundErrors] = field(default_factory=dict)

    def table(self) -> Table:
        """Return errors and quality of every method, in the order of the methods."""
        colours = method_colours(in_method_order([*self.methods, *self.bounds]))
        rows = tuple(
            (Cell(name, colour=colour), *self._cells(name)) for name, colour in colours.items()
        )
        caption = f"Mean absolute errors of learned losses in {self.title}, in {self.unit}"
        return Table(caption, (self.title, *_ERROR_COLUMNS), rows)

    def _cells(self, name: str) -> tuple[Cell, ...]:
        if name in self.methods:
            method = self.methods[name]
            return (*(_cell(method, column) for column in _FACTORS), _calls(method))
        bound = self.bounds[name]
        error = bound.empirical.times(_FACTORS["empirical"])
        return mean_cell(error, None), Cell(""), mean_cell(bound.quality, None), _calls(bound)


@dataclass(frozen=True)
class Table3:
    """Errors, decision quality and how they are related, by domain: `table3.json`."""

    kind: str = "fidelity"
    domains: Mapping[str, DomainErrors] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Table3":
        """Return the table of rows of any methods and domains, without rows that have no errors."""
        groups: dict[str, dict[str, list[Row]]] = {}
        for line, row in with_lines(rows):
            if row.empirical_error:
                groups.setdefault(row.domain, {}).setdefault(line, []).append(row)
        domains = {name: _domain(name, group) for name, group in groups.items()}
        return cls(domains={name: domain for name, domain in domains.items() if domain.methods})

    def trends(self) -> Table:
        """Return the straight lines of all domains."""
        rows = tuple(row for domain in self.domains.values() for row in _trend_rows(domain))
        return Table("Decision quality as a straight line in the error", _TREND_COLUMNS, rows)

    def tables(self) -> list[Table]:
        """Return the errors of each domain, then the straight lines of all."""
        return [*(domain.table() for domain in self.domains.values()), self.trends()]


def _domain(name: str, rows: Mapping[str, Sequence[Row]]) -> DomainErrors:
    unit = ERROR_UNITS.get(name, ErrorUnit())
    published = _PUBLISHED.get(name, {})
    methods = {
        method: _method(group, unit.factor, published.get(method))
        for method, group in rows.items()
        if _is_fitted(group)
    }
    bounds = {
        method: _bound(group, unit.factor)
        for method, group in rows.items()
        if not _is_fitted(group)
    }
    trends = {error: _trends(methods, error) for error in ERRORS}
    return DomainErrors(DOMAINS.get(name, name), unit.name, methods, trends, bounds)


def _is_fitted(rows: Sequence[Row]) -> bool:
    """Return whether losses have errors around labels, which a loss that is not fitted lacks."""
    return all(row.gaussian_error is not None for row in rows)


def _bound(rows: Sequence[Row], factor: float) -> BoundErrors:
    return BoundErrors(
        empirical=MeanStd.of([factor * error for row in rows for error in row.empirical_error]),
        quality=MeanStd.of([quality for row in rows for quality in row.test]),
        oracle_calls=_mean_calls(rows),
    )


def _mean_calls(rows: Sequence[Row]) -> float:
    return float(np.mean([row.oracle_calls or 0.0 for row in rows]))


def _method(
    rows: Sequence[Row], factor: float, paper: Mapping[str, MeanStd] | None
) -> MethodErrors:
    runs = {
        "empirical": tuple(factor * error for row in rows for error in row.empirical_error),
        # One loss, so one error around labels, serves all initialisations of a seed.
        "gaussian": tuple(factor * (row.gaussian_error or 0.0) for row in rows for _ in row.test),
        "quality": tuple(quality for row in rows for quality in row.test),
    }
    means = {name: MeanStd.of(values) for name, values in runs.items()}
    return MethodErrors(**means, runs=runs, paper=paper, oracle_calls=_mean_calls(rows))


def _trends(methods: Mapping[str, MethodErrors], error: str) -> Trends:
    errors, qualities = (
        [value for method in methods.values() for value in method.runs[name]]
        for name in (error, "quality")
    )
    published = [method.paper for method in methods.values() if method.paper is not None]
    return Trends(
        of_methods=_trend_of_methods(methods.values(), error),
        without_one=_without_one(methods, error),
        # Runs share losses and domain seeds: an interval that takes them for independent would lie.
        of_runs=_trend(errors, qualities, independent=False),
        of_paper=_trend(
            [paper[error].mean for paper in published],
            [paper["quality"].mean for paper in published],
        ),
    )


def _without_one(methods: Mapping[str, MethodErrors], error: str) -> WithoutOne | None:
    """Return the method without which the correlation is the weakest, or even of another sign."""
    of_all = _trend_of_methods(methods.values(), error)
    left_out = {name: [methods[other] for other in methods if other != name] for name in methods}
    trends = {name: _trend_of_methods(others, error) for name, others in left_out.items()}
    correlations = {name: trend.correlation for name, trend in trends.items() if trend}
    if of_all is None or not correlations:
        return None
    name = min(correlations, key=lambda name: of_all.correlation * correlations[name])
    return WithoutOne(name, correlations[name])


def _trend_of_methods(methods: Iterable[MethodErrors], error: str) -> Trend | None:
    means = [(method.mean_std(error).mean, method.quality.mean) for method in methods]
    return _trend([error for error, _ in means], [quality for _, quality in means])


def _trend(
    errors: Sequence[float], qualities: Sequence[float], *, independent: bool = True
) -> Trend | None:
    if len(errors) < 3 or np.ptp(errors) == 0 or np.ptp(qualities) == 0:
        return None
    line = stats.linregress(errors, qualities)
    half = float(stats.t.ppf(0.975, len(errors) - 2) * line.intercept_stderr)
    interval = (float(line.intercept) - half, float(line.intercept) + half)
    return Trend(
        slope=float(line.slope),
        intercept=float(line.intercept),
        intercept_95=interval if independent else None,
        correlation=float(line.rvalue),
        n=len(errors),
    )


def _cell(method: MethodErrors, column: str) -> Cell:
    factor = _FACTORS[column]
    paper = None if method.paper is None else method.paper[column].times(factor)
    return mean_cell(method.mean_std(column).times(factor), paper)


def _calls(errors: MethodErrors | BoundErrors) -> Cell:
    return Cell.of_number(errors.oracle_calls, "{:,.0f}")


def _trend_rows(domain: DomainErrors) -> Iterator[tuple[Cell, ...]]:
    for name, points in _POINTS.items():
        line: Trend | None = getattr(domain.trends["empirical"], name)
        if line is not None and line.is_shown:
            at_predictions, around_labels = (
                _correlation(domain.trends[error], name) for error in ERRORS
            )
            yield Cell(f"{domain.title}, {points}"), at_predictions, _intercept(line), around_labels


def _correlation(trends: Trends, name: str) -> Cell:
    trend: Trend | None = getattr(trends, name)
    if trend is None:
        return Cell("")
    text, without = f"{trend.correlation:z.2f}", trends.without_one
    if name == "of_methods" and without is not None:
        text += f" ({without.correlation:z.2f} without {without.method})"
    return Cell(text, trend.correlation)


def _intercept(trend: Trend) -> Cell:
    text = ""
    if trend.intercept_95 is not None:
        low, high = (min(end, _BEST) for end in trend.intercept_95)
        text = f" [{low:z.2f}, {high:z.2f}]"
    return Cell(f"{quality_in_words(trend.intercept)}{text}", trend.intercept)


def quality_in_words(quality: float) -> str:
    """Return the quality that a line foretells, without numbers that cannot be."""
    return f"{quality:z.2f}" if quality <= _BEST else "above 1"
