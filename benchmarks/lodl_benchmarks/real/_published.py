"""Published figures of the tasks of other papers, next to our rows."""

from collections.abc import Sequence

import numpy as np

from lodl.report import Cell, Table
from lodl_benchmarks.real._run import LEARNER, METHODS
from lodl_benchmarks.real._tasks import MODELS, TASKS
from lodl_benchmarks.runner import RowValues

PJM = {
    "two-stage, normal loads": 5.580,
    "decision-focused, point prediction": 4.324,
    "decision-focused, normal loads": 3.724,
    "decision-focused, diffusion model, score function": 3.171,
    "decision-focused, diffusion model": 3.152,
}
"""Cost a day on the published test days (Zhao et al., 2025, arXiv 2510.11590). All but the second
predict a distribution, and minimise its expected cost; ours are point predictions."""


def published_tables(rows: Sequence[RowValues], tasks: Sequence[str]) -> list[Table]:
    """Return a table for each task: published figures, then ours, the least regret last."""
    return [table for task in tasks if (table := _table(rows, task)).rows]


def _table(rows: Sequence[RowValues], task: str) -> Table:
    published = PJM.items() if task.startswith("pjm") else ()
    lines = [
        (Cell(f"published: {name}"), Cell(f"{cost:.2f}", cost), *[Cell("")] * 4)
        for name, cost in published
    ]
    for model in MODELS:
        for method in METHODS:
            found = [
                r for r in rows if (r["task"], r["model"], r["method"]) == (task, model, method)
            ]
            if found:
                lines.append(_line(model, method, found))
    ordered = sorted(lines, key=lambda line: -(line[1].value or 0.0))
    columns = ("method", "regret", "% of optimum", "splits", "calls an instance", "CPU s")
    return Table(TASKS[task].title, columns, tuple(ordered))


def _line(model: str, method: str, rows: Sequence[RowValues]) -> tuple[Cell, ...]:
    def mean(name: str) -> float:
        return float(np.mean([row[name] for row in rows]))

    regret, optimum = mean("regret"), abs(mean("optimum"))
    has_scale = optimum > 1e-6 * regret
    calls = float(np.mean([row["n_calls"] / row["n_train"] for row in rows]))
    return (
        Cell(f"{model}: {'lodl' if method == LEARNER else method}"),
        Cell(f"{regret:.4g}", regret),
        Cell.of_number(100 * regret / optimum, "{:.2f}") if has_scale else Cell(""),
        Cell.of_number(len(rows), "{}"),
        Cell.of_number(calls, "{:.1f}"),
        Cell.of_number(mean("cpu_seconds"), "{:.1f}"),
    )
