"""Tables of decision quality: methods down, something else across, the paper's figures beside."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

from lodl.experiments._methods import METHODS
from lodl.experiments._results import Row
from lodl.paper import Published

PARTS = ("sampling", "fitting", "training")
"""Where the time goes."""

_Column = TypeVar("_Column", bound=Hashable)


@dataclass(frozen=True)
class Figure:
    """A mean and its standard deviation over runs."""

    mean: float
    std: float

    def __str__(self) -> str:
        return f"{self.mean:z.2f} ± {self.std:.2f}"  # z: no minus before a zero

    def is_apart_from(self, other: "Figure") -> bool:
        """Tells whether the two intervals mean ± std, rounded as printed, do not meet."""
        return abs(self.mean - other.mean) > self.std + other.std + 0.01


@dataclass(frozen=True)
class Cell:
    """One method in one column.

    Attributes:
        ours: Normalised test decision quality over all runs.
        n_runs: How many runs.
        paper: The published figure, None where there is none.
        oracle_calls: Per domain seed.
        seconds: Sampling, fitting and training per domain seed, on one core.
    """

    ours: Figure
    n_runs: int
    paper: Figure | None
    oracle_calls: float
    seconds: Mapping[str, float]


def figure_of(values: Sequence[float]) -> Figure:
    """Returns mean and standard deviation."""
    return Figure(float(np.mean(values)), float(np.std(values)))


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
        ours=figure_of(values),
        n_runs=len(values),
        paper=None if published is None else Figure(*published),
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


def beside(ours: Figure, paper: Figure | None) -> str:
    """Returns our figure with the paper's in brackets, and a star where they are apart."""
    if paper is None:
        return str(ours)
    return f"{ours} ({paper}){' *' if ours.is_apart_from(paper) else ''}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
