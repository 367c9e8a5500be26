"""Tables of decision quality: methods down, something else across, the paper's figures beside."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

from lodl.benchmarks._methods import METHODS
from lodl.benchmarks._results import Row
from lodl.paper import MeanStd, Published
from lodl.rows import PARTS

_Column = TypeVar("_Column", bound=Hashable)


@dataclass(frozen=True)
class Cell:
    """One method in one column.

    Attributes:
        ours: Normalised test decision quality over all runs.
        n_runs: How many runs.
        paper: The published figure, None where there is none.
        sampler: That drew the candidates of learned losses.
        n_samples: Candidates per instance.
        oracle_calls: Per domain seed.
        seconds: Sampling, fitting and training per domain seed, on one core.
    """

    ours: MeanStd
    n_runs: int
    paper: MeanStd | None
    sampler: str
    n_samples: int
    oracle_calls: float
    seconds: Mapping[str, float]


def mean_std(values: Sequence[float]) -> MeanStd:
    """Returns mean and standard deviation."""
    return MeanStd(float(np.mean(values)), float(np.std(values)))


def quality_cells(
    rows: Iterable[Row],
    column: Callable[[Row], _Column],
    published: Callable[[str, _Column], Published | None],
) -> dict[tuple[str, _Column], Cell]:
    """Returns the cells by (method, column), from rows of any number of seeds."""
    groups: dict[tuple[str, _Column], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["method"], column(row)), []).append(row)
    return {key: _cell(group, published(*key)) for key, group in groups.items()}


def _cell(rows: Sequence[Row], published: Published | None) -> Cell:
    values = [value for row in rows for value in row["test"]]
    return Cell(
        ours=mean_std(values),
        n_runs=len(values),
        paper=None if published is None else MeanStd(*published),
        sampler=rows[0]["sampler"],
        n_samples=rows[0]["n_samples"],
        oracle_calls=float(np.mean([row["oracle_calls"] for row in rows])),
        seconds={part: float(np.mean([row[f"seconds_{part}"] for row in rows])) for part in PARTS},
    )


def quality_json(cells: Mapping[tuple[str, _Column], Cell]) -> dict[str, Any]:
    """Returns the cells as JSON values."""
    return {
        "kind": "quality",
        "cells": [
            {"method": method, "column": column, **asdict(cell)}
            for (method, column), cell in cells.items()
        ],
    }


def quality_markdown(
    cells: Mapping[tuple[str, _Column], Cell], titles: Mapping[_Column, str]
) -> str:
    """Returns the table for people: ours, the paper's in brackets, a star where they differ."""
    rows = [
        [method, *(_cell_text(cells.get((method, column))) for column in titles)]
        for method in METHODS
        if any((method, column) in cells for column in titles)
    ]
    return markdown_table(["loss", *titles.values()], rows)


def _cell_text(cell: Cell | None) -> str:
    return "" if cell is None else beside(cell.ours, cell.paper)


def beside(ours: MeanStd, paper: MeanStd | None) -> str:
    """Returns our figure with the paper's in brackets, and a star where they are apart."""
    if paper is None:
        return str(ours)
    return f"{ours} ({paper}){' *' if ours.is_apart_from(paper) else ''}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
