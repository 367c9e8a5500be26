"""The table of `evaluate`: several models compared by decisions on data that selected nothing.

Each row is one way to predict. The last one is the model that was evaluated; its difference from
every other row is paired by instance.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lodl._typing import Array
from lodl.report._html import Cell, Table
from lodl.report._records import FEWEST_INSTANCES, Estimate
from lodl.report._text import amounts

_HEADER = ("", "regret", "% of optimum", "this model less it (95% interval)")


@dataclass(frozen=True)
class EvaluationRow:
    """One way to predict, and the regret of its decisions.

    Attributes:
        name: What predicts.
        regret: Regret of each instance, in the objective's unit. Instances on which a solver call
            failed are left out of all rows.
    """

    name: str
    regret: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean regret per instance."""
        return float(np.mean(self.regret))


@dataclass(frozen=True)
class Evaluation:
    """Regrets of several models on the same instances, which none of them was trained on.

    Print it for the table.

    Attributes:
        rows: The models, the evaluated one last.
        optimum: Objective of the best decision for each instance's label.
        unit: The unit of the objective, or empty.
        n_calls: Solver calls that the evaluation took.
        n_left_out: Instances left out because a solver call failed on them.
    """

    rows: tuple[EvaluationRow, ...]
    optimum: tuple[float, ...]
    unit: str
    n_calls: int
    n_left_out: int = 0

    @classmethod
    def of(
        cls, regrets: Mapping[str, Array], optimum: Array, *, unit: str = "", n_calls: int = 0
    ) -> "Evaluation":
        """Compare models by their regrets.

        Args:
            regrets: Regrets by the model's name, each of shape (n,), NaN if the solver failed. The
                evaluated model comes last.
            optimum: Objective of the best decision for each label, shape (n,).
            unit: The unit of the objective.
            n_calls: Solver calls made.
        """
        known = np.isfinite(np.stack([*regrets.values(), optimum])).all(axis=0)
        rows = [EvaluationRow(name, _floats(regret[known])) for name, regret in regrets.items()]
        n_left_out = int(np.sum(~known))
        return cls(tuple(rows), _floats(optimum[known]), unit, n_calls, n_left_out)

    @property
    def n_instances(self) -> int:
        """Number of instances that are compared."""
        return len(self.optimum)

    def percent(self, row: EvaluationRow) -> float | None:
        """Return a row's regret in per cent of the optimum, or None if the optimum is about 0."""
        optimum = abs(float(np.mean(self.optimum)))
        largest = max(abs(row.mean) for row in self.rows)
        return 100 * row.mean / optimum if optimum > 1e-9 * largest else None

    def difference(self, row: EvaluationRow) -> tuple[float, float, float]:
        """Return the evaluated model's mean regret less a row's, with its 95% interval."""
        gap = Estimate.of(np.array(self.rows[-1].regret) - np.array(row.regret))
        return gap.mean, gap.low, gap.high

    def to_dict(self) -> dict[str, object]:
        """Return the table's numbers as plain data."""
        return {
            "unit": self.unit,
            "n_instances": self.n_instances,
            "n_left_out": self.n_left_out,
            "n_calls": self.n_calls,
            "rows": [
                {
                    "name": row.name,
                    "regret": row.mean,
                    "percent": self.percent(row),
                    "difference": self.difference(row),
                }
                for row in self.rows
            ],
        }

    def __str__(self) -> str:
        if not self.n_instances:
            return "No instance can be compared: a solver call failed on each of them."
        cells = tuple(tuple(map(Cell, self._cells(row))) for row in self.rows)
        unit = f", in {self.unit}" if self.unit else ""
        note = f"Regret per instance{unit}: {self.n_instances:,} test instances, "
        note += f"{self.n_calls:,} solver calls."
        if self.n_left_out:
            note += f" Left out, because a solver call failed: {self.n_left_out:,} instances."
        return f"{Table(note, _HEADER, cells).text()}\n{note}"

    def _cells(self, row: EvaluationRow) -> tuple[str, str, str, str]:
        smallest = min((abs(row.mean) for row in self.rows if row.mean), default=0.0)
        decimals = len(amounts(smallest)[0].partition(".")[2])  # all rows as the smallest
        regret = f"{row.mean:z,.{decimals}f}"
        percent = self.percent(row)
        share = "" if percent is None else f"{percent:.2f}"
        if row is self.rows[-1] or self.n_instances < FEWEST_INSTANCES:
            return row.name, regret, share, ""
        gap, low, high = amounts(*self.difference(row))
        return row.name, regret, share, f"{gap} ({low} to {high})"


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(map(float, values))
