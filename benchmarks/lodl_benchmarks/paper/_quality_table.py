"""Tables 1 and 2: decision quality, with the paper's numbers next to ours."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lodl.report import Cell, Table
from lodl_benchmarks.pages import PARTS, MeanStd, Row, in_method_order, mean_cell, method_colours
from lodl_benchmarks.paper._published import (
    DOMAINS,
    SAMPLERS,
    TABLE2A,
    TABLE2B,
    published_quality,
)

QUALITY_TEXT = (
    "Normalised test decision quality: mean ± standard deviation over runs; the paper's in "
    "brackets, a star where the two intervals do not meet."
)


@dataclass(frozen=True)
class MethodQuality:
    """The decision quality of one method in one column."""

    # Loss that the models were trained on, with the number of samples if it has several.
    method: str
    column: str | int  # a domain, a sampler, or a number of samples
    ours: MeanStd  # normalised test decision quality over all runs
    n_runs: int  # the number of runs
    paper: MeanStd | None  # the published number, if there is one
    sampler: str  # the sampler of the points of learned losses
    n_samples: int  # points per instance
    oracle_calls: float  # calls of the solver per domain seed
    seconds: Mapping[str, float]  # sampling, fitting and training per domain seed, on one core


@dataclass(frozen=True)
class QualityTable:
    """Decision quality by method and column: `table1.json`, `table2a.json`, `table2b.json`."""

    kind: str = "quality"
    cells: tuple[MethodQuality, ...] = ()

    def table(self, caption: str = "Decision quality") -> Table:
        """Return methods down, columns across: ours, and the paper's in brackets."""
        places = {(cell.method, cell.column): cell for cell in self.cells}
        titles = _titles({cell.column for cell in self.cells})
        colours = method_colours(in_method_order(cell.method for cell in self.cells))
        rows = tuple(
            (
                Cell(method, colour=colour),
                *(_cell(places.get((method, column))) for column in titles),
            )
            for method, colour in colours.items()
        )
        return Table(caption, ("loss", *titles.values()), rows)

    def costs(self, column: str = "domain") -> Table:
        """Return oracle calls and seconds of one core per domain seed, the first column titled."""
        rows = tuple(
            (
                Cell(DOMAINS.get(str(cell.column), str(cell.column))),
                Cell(cell.method),
                Cell.of_number(cell.oracle_calls, "{:,.0f}"),
                *(Cell.of_number(cell.seconds[part], "{:.1f}") for part in PARTS),
            )
            for cell in self.cells
        )
        return Table("Oracle calls and seconds", (column, "loss", "oracle calls", *PARTS), rows)


def table1(rows: Sequence[Row]) -> QualityTable:
    """Return decision quality by method and domain, from rows of any number of seeds."""
    return _quality_table(with_lines(rows), lambda row: row.domain, published_quality)


def table2a(rows: Sequence[Row]) -> QualityTable:
    """Return decision quality in Web Advertising by method and sampler."""
    return _quality_table(
        ((row.method, row) for row in rows),
        lambda row: row.setting("sampler").partition("(")[0],
        lambda method, sampler: TABLE2A.get(method, {}).get(sampler),
    )


def table2b(rows: Sequence[Row]) -> QualityTable:
    """Return decision quality in Web Advertising by method and number of samples."""
    return _quality_table(
        ((row.method, row) for row in rows),
        lambda row: int(row.setting("n_samples")),
        lambda method, n_samples: TABLE2B.get(method, {}).get(n_samples),
    )


def _quality_table(
    rows: Iterable[tuple[str, Row]],
    column: Callable[[Row], str | int],
    published: Callable[..., MeanStd | None],
) -> QualityTable:
    groups: dict[tuple[str, str | int], list[Row]] = {}
    for line, row in rows:
        groups.setdefault((line, column(row)), []).append(row)
    return QualityTable(
        cells=tuple(_quality(*key, group, published(*key)) for key, group in groups.items())
    )


def _quality(
    method: str, column: str | int, rows: Sequence[Row], paper: MeanStd | None
) -> MethodQuality:
    runs = [value for row in rows for value in row.test]
    seconds = [dict(row.seconds) for row in rows]
    return MethodQuality(
        method=method,
        column=column,
        ours=MeanStd.of(runs),
        n_runs=len(runs),
        paper=paper,
        sampler=rows[0].setting("sampler"),
        n_samples=int(rows[0].setting("n_samples")),
        oracle_calls=float(np.mean([row.oracle_calls or 0.0 for row in rows])),
        seconds={part: float(np.mean([of_row[part] for of_row in seconds])) for part in PARTS},
    )


def _titles(columns: set[str | int]) -> dict[str | int, str]:
    """Return the titles of the columns: the paper's in its order, numbers by size, then others."""
    titles: dict[str | int, str] = {}
    titles |= {name: title for name, title in {**DOMAINS, **SAMPLERS}.items() if name in columns}
    titles |= {n: f"{n:,} samples" for n in sorted(c for c in columns if isinstance(c, int))}
    return titles | {name: str(name) for name in sorted(columns - titles.keys(), key=str)}


def _cell(quality: MethodQuality | None) -> Cell:
    return Cell("") if quality is None else mean_cell(quality.ours, quality.paper)


def with_lines(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield each row with the name of its line.

    The name is the row's method. If a method has rows with several numbers of samples, all rows but
    those with the fewest also name their number.
    """
    fewest: dict[str, int] = {}
    for row in rows:
        fewest[row.method] = min(fewest.get(row.method, _n_samples(row)), _n_samples(row))
    for row in rows:
        n = _n_samples(row)
        yield row.method if n == fewest[row.method] else f"{row.method}, {n:,} samples", row


def _n_samples(row: Row) -> int:
    return int(row.setting("n_samples") or 0)
