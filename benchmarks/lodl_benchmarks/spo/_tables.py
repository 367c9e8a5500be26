"""Tables of the founding data: published figures, and methods on the same draws."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lodl._typing import Array
from lodl.report import Cell as Entry
from lodl.report import Table
from lodl_benchmarks.pages import holm, plus_minus, t_test, verdict_of
from lodl_benchmarks.runner import RowValues
from lodl_benchmarks.spo._methods import LEAST_SQUARES, METHODS, OURS, SPO_PLUS, SPO_PLUS_ALL
from lodl_benchmarks.spo._published import PUBLISHED_METHODS, Figure, Published
from lodl_benchmarks.spo._tasks import CELLS, PATH, PORTFOLIO

_SAME = {SPO_PLUS: SPO_PLUS, LEAST_SQUARES: LEAST_SQUARES, "random forest": "forest"}
"""Our name of each published method that we ran, too."""
_REFERENCES = (SPO_PLUS, SPO_PLUS_ALL, LEAST_SQUARES, f"{LEAST_SQUARES}, all rows")
_FROM_DEGREE = 4  # linear models are wrong from here on
_DIGITS = 5  # of a regret in per cent: the rest is the solvers' rounding


@dataclass(frozen=True, eq=False)
class Column:
    """A method in a cell: per cent of the optimum on each draw, calls and CPU seconds."""

    percent: Mapping[int, float]  # by draw
    calls: float | None
    seconds: float

    @property
    def figure(self) -> Figure:
        """The mean over draws and its standard error."""
        return _figure(np.array(list(self.percent.values())))

    def less(self, other: "Column") -> "Gap":
        """Return the paired difference to another method, on the draws of both."""
        draws = sorted(self.percent.keys() & other.percent.keys())
        figure = _figure(np.array([self.percent[d] - other.percent[d] for d in draws]))
        return Gap(figure.mean, figure.error, len(draws))


@dataclass(frozen=True)
class Gap(Figure):
    """A paired difference and its standard error."""

    n: int  # number of draws

    @property
    def p_value(self) -> float:
        """Two-sided p-value of a t-test over draws."""
        return t_test(self.mean, self.error, self.n)


def _figure(values: Array) -> Figure:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return Figure(float(values.mean()) if len(values) else np.nan, float(error))


def columns(rows: Sequence[RowValues]) -> dict[str, dict[str, Column]]:
    """Return the methods of each cell. If a row was computed again, the last one counts."""
    latest = {(row["task"], row["method"], row["seed"]): row for row in rows}
    found: dict[str, dict[str, Column]] = {}
    for cell in CELLS:
        for method in METHODS:
            group = [row for key, row in latest.items() if key[:2] == (cell, method)]
            if group:
                calls = [row["oracle_calls"] for row in group if row["oracle_calls"] is not None]
                found.setdefault(cell, {})[method] = Column(
                    {row["seed"]: round(row["percent"], _DIGITS) for row in group},
                    float(np.mean(calls)) if calls else None,
                    float(np.mean([row["cpu_seconds"] for row in group])),
                )
    return found


def tables(rows: Sequence[RowValues], published: Published | None = None) -> list[Table]:
    """Return what was to be shown, the published table beside ours, and methods on the same draws.

    The first two depend on the published figures.
    """
    found = []
    for problem in (PATH, PORTFOLIO):
        part = [row for row in rows if CELLS[row["task"]].problem == problem]
        if part or problem == PATH:
            name = "" if problem == PATH else "Portfolios: "
            found += [
                replace(table, caption=f"{name}{table.caption}")
                for table in _of_problem(part, published or {})
            ]
    return found


def _of_problem(rows: Sequence[RowValues], published: Published) -> list[Table]:
    by_cell = columns(rows)
    claims = verdict(rows, published) or ["No row of the learner yet."]
    shown = Table("What was to be shown", ("claim",), tuple((Entry(line),) for line in claims))
    return [shown, _beside_published(by_cell, published), *_on_same_draws(by_cell)]


def _beside_published(by_cell: Mapping[str, Mapping[str, Column]], published: Published) -> Table:
    """Return published figures, each beside the same method on our draws."""
    lines = []
    for name, of_cell in by_cell.items():
        cell = CELLS[name]
        entries = [Entry(cell.title)]
        for method in PUBLISHED_METHODS:
            entries.append(_entry(published.get((*cell.key, method))))
            if method in _SAME:
                column = of_cell.get(_SAME[method])
                entries.append(_entry(column.figure if column else None))
        lines.append(tuple(entries))
    titles = ["data"]
    for method in PUBLISHED_METHODS:
        titles += [f"{method}, published", *([f"{method}, here"] if method in _SAME else [])]
    return Table("Published, and the same methods on our draws, in %", tuple(titles), tuple(lines))


def _on_same_draws(by_cell: Mapping[str, Mapping[str, Column]]) -> Iterator[Table]:
    """Yield the regrets of all methods, their CPU seconds, and the differences of ours to SPO+."""
    shown = [method for method in METHODS if any(method in found for found in by_cell.values())]
    lines = tuple(
        (
            Entry(CELLS[name].title),
            *(_entry(found[method].figure if method in found else None) for method in shown),
        )
        for name, found in by_cell.items()
    )
    yield Table("Methods on the same draws, in %", ("data", *shown), lines)
    seconds = tuple(
        (
            Entry(CELLS[name].title),
            *(
                Entry(f"{found[method].seconds:.2g} ({len(found[method].percent)})")
                if method in found
                else Entry("")
                for method in shown
            ),
        )
        for name, found in by_cell.items()
    )
    yield Table("CPU seconds of a draw (number of draws)", ("data", *shown), seconds)
    for ours in (method for method in METHODS if method.startswith(OURS)):
        cells = {name: found for name, found in by_cell.items() if ours in found}
        if cells:
            yield _differences(ours, cells)


def _differences(ours: str, cells: Mapping[str, Mapping[str, Column]]) -> Table:
    """Return our learner less other methods, with tests corrected for the number of cells."""
    lines = []
    for name, found in cells.items():
        n, calls = CELLS[name].n + CELLS[name].n // 4, found[ours].calls
        lines.append(
            [
                Entry(CELLS[name].title),
                Entry.of_number(len(found[ours].percent), "{}"),
                Entry.of_number(None if calls is None else calls / n, "{:.1f}"),
            ]
        )
    for reference in _REFERENCES:
        gaps = [
            found[ours].less(found[reference]) if reference in found else None
            for found in cells.values()
        ]
        corrected = iter(holm([gap.p_value for gap in gaps if gap]))
        for line, gap in zip(lines, gaps, strict=True):
            outcome = verdict_of(gap.mean, next(corrected)) if gap else ""
            line += [_entry(gap, signed=True), Entry(outcome)]
    columns = ["data", "draws", "calls an instance"]
    for reference in _REFERENCES:
        columns += [f"less {reference}", "by Holm"]
    caption = f"{ours} less other methods, paired by draw, in points"
    return Table(caption, tuple(columns), tuple(map(tuple, lines)))


def verdict(rows: Sequence[RowValues], published: Published | None = None) -> list[str]:
    """Return what was to be shown and how often it holds, in a line each."""
    by_cell = {name: found for name, found in columns(rows).items() if OURS in found}
    if not by_cell:
        return []
    best = [_is_best(name, found, published or {}) for name, found in by_cell.items()]
    lines = [
        f"{OURS} with a linear model is best, or within one standard error of the best, in "
        f"{sum(best)} of {len(best)} cells."
    ]
    for reference in (SPO_PLUS, SPO_PLUS_ALL):
        gaps = [
            (CELLS[name].degree, found[OURS].less(found[reference]))
            for name, found in by_cell.items()
            if reference in found
        ]
        if not gaps:
            continue
        curved = [gap for degree, gap in gaps if degree >= _FROM_DEGREE]
        better = sum(gap.mean < -gap.error for gap in curved)
        worse = sum(gap.mean > gap.error for _, gap in gaps)
        corrected = holm([gap.p_value for _, gap in gaps])
        pairs = zip(gaps, corrected, strict=True)
        verdicts = [verdict_of(gap.mean, p) for (_, gap), p in pairs]
        lines.append(
            f"Beside {reference} on the same draws it is better by more than one standard error in "
            f"{better} of {len(curved)} cells from degree {_FROM_DEGREE} on, and worse in {worse} "
            f"of all {len(gaps)}; by Holm's corrected tests better in {verdicts.count('better')} "
            f"and worse in {verdicts.count('worse')} of all {len(gaps)}."
        )
    straight = [
        found[OURS].less(found[f"{LEAST_SQUARES}, all rows"])
        for name, found in by_cell.items()
        if CELLS[name].degree < _FROM_DEGREE and f"{LEAST_SQUARES}, all rows" in found
    ]
    if straight:
        worse = sum(gap.mean > gap.error for gap in straight)
        lines.append(
            f"It is worse than least squares on all rows by more than one standard error in "
            f"{worse} of {len(straight)} cells below degree {_FROM_DEGREE}."
        )
    return lines


def _is_best(name: str, found: Mapping[str, Column], published: Published) -> bool:
    """Return whether no column is better by more than a standard error of the difference.

    A difference on a single draw has no error, and does not count.
    """
    ours, cell = found[OURS], CELLS[name]
    paired = [ours.less(other) for method, other in found.items() if not method.startswith(OURS)]
    gaps: list[Figure] = [gap for gap in paired if gap.n > 1]
    mean = ours.figure
    for method in PUBLISHED_METHODS:
        other = published.get((*cell.key, method))
        if other is not None:
            error = float(np.hypot(mean.error, other.error))
            gaps.append(Figure(mean.mean - other.mean, error))
    return all(gap.mean <= gap.error for gap in gaps)


def _entry(figure: Figure | None, *, signed: bool = False) -> Entry:
    if figure is None or np.isnan(figure.mean):
        return Entry("")
    return Entry(plus_minus(figure.mean, figure.error, signed=signed), figure.mean)
