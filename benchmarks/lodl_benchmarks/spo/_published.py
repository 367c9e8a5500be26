"""Published figures of the founding table, read from a CSV file."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lodl.errors import DataError

PUBLISHED_METHODS = ("SPO+", "least squares", "random forest", "absolute loss")
_COLUMNS = ("problem", "n_train", "degree", "noise", "method", "mean_pct", "se_pct")


@dataclass(frozen=True)
class Figure:
    """A mean over trials, in per cent of the optimum, and its standard error."""

    mean: float
    error: float


Published = Mapping[tuple[str, int, float, int, str], Figure]
"""Figures by problem, number of instances, noise, degree and method."""


def read_published(path: str | Path) -> Published:
    """Read the figures of both tables.

    The file has the columns problem, n_train, degree, noise, method, mean_pct and se_pct.
    """
    try:
        with Path(path).open(newline="") as file:
            rows = list(csv.DictReader(file))
        missing = [name for name in _COLUMNS if not rows or name not in rows[0]]
        if missing:
            raise DataError(f"{path} must have the columns {', '.join(_COLUMNS)}; {missing} lack.")
        return {
            (
                row["problem"],
                int(row["n_train"]),
                float(row["noise"]),
                int(row["degree"]),
                row["method"],
            ): Figure(float(row["mean_pct"]), float(row["se_pct"]))
            for row in rows
        }
    except (OSError, ValueError) as error:
        raise DataError(f"Cannot read the published figures of {path}: {error}") from error
