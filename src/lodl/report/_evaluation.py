"""The table of `evaluate`: several models compared by decisions on data that selected nothing."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lodl._typing import Array
from lodl.report._result import FEWEST_INSTANCES, Estimate, amounts
from lodl.report.page import Cell, Table

_HEADER = ("", "regret", "% of optimum", "this model less it (95% interval)")


@dataclass(frozen=True)
class Evaluation:
    """Regrets of several models on the same instances, which none of them was trained on.

    Print it for the table.

    Attributes:
        regrets: Regret of each instance by the name of what predicts, in the objective's unit. The
            evaluated model comes last.
        optimum: Objective of the best decision for each instance's label.
        unit: The unit of the objective, or empty.
        n_calls: Solver calls that the evaluation took.
        n_left_out: Instances left out of all regrets because a solver call failed on them.
    """

    regrets: Mapping[str, tuple[float, ...]]
    optimum: tuple[float, ...]
    unit: str
    n_calls: int
    n_left_out: int = 0

    @classmethod
    def of(
        cls, regrets: Mapping[str, Array], optimum: Array, *, unit: str = "", n_calls: int = 0
    ) -> "Evaluation":
        """Compare models by their regrets, shape (n,) each and NaN if the solver failed."""
        known = np.isfinite(np.stack([*regrets.values(), optimum])).all(axis=0)
        rows = {name: tuple(regret[known].tolist()) for name, regret in regrets.items()}
        best = tuple(np.asarray(optimum)[known].tolist())
        return cls(rows, best, unit, n_calls, int(np.sum(~known)))

    @property
    def means(self) -> dict[str, float]:
        """Mean regret per instance of each model."""
        return {name: float(np.mean(regret)) for name, regret in self.regrets.items()}

    def percent(self, name: str) -> float | None:
        """Return a model's regret in per cent of the optimum, or None if the optimum is about 0."""
        means, optimum = self.means, abs(float(np.mean(self.optimum)))
        is_defined = optimum > 1e-9 * max(map(abs, means.values()))
        return 100 * means[name] / optimum if is_defined else None

    def difference(self, name: str) -> Estimate:
        """Return the evaluated model's mean regret less another one's, paired by instance."""
        *_, ours = self.regrets.values()
        return Estimate.of(np.array(ours) - np.array(self.regrets[name]))

    def __str__(self) -> str:
        if not self.optimum:
            return "No instance can be compared: a solver call failed on each of them."
        n, means = len(self.optimum), self.means
        smallest = min((abs(mean) for mean in means.values() if mean), default=0.0)
        decimals = len(amounts(smallest)[0].partition(".")[2])  # all rows as the smallest
        rows = []
        for i, (name, mean) in enumerate(means.items(), 1):
            percent, gap = self.percent(name), self.difference(name)
            mid, low, high = amounts(gap.mean, gap.low, gap.high)
            has_interval = i < len(means) and n >= FEWEST_INSTANCES
            texts = (
                name,
                f"{mean:z,.{decimals}f}",
                "" if percent is None else f"{percent:.2f}",
                f"{mid} ({low} to {high})" if has_interval else "",
            )
            rows.append(tuple(map(Cell, texts)))
        unit = f", in {self.unit}" if self.unit else ""
        note = f"Regret per instance{unit}: {n:,} test instances, {self.n_calls:,} solver calls."
        if self.n_left_out:
            note += f" Left out, because a solver call failed: {self.n_left_out:,} instances."
        return f"{Table(note, _HEADER, tuple(rows)).text()}\n{note}"
