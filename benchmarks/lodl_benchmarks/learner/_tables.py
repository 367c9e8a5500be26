"""Tables of the rows: what the learner gains on each task, a table per model."""

from collections.abc import Mapping, Sequence

import numpy as np

from lodl.report import Cell, Table
from lodl_benchmarks.learner._tasks import MODELS, TASKS, LearnerTask
from lodl_benchmarks.runner import RowValues

_COLUMNS = (
    "task",
    "seeds",
    "constant",
    "2-stage",
    "learner",
    "difference",
    "standard error",
    "verdict",
    "by seed",
    "oracle calls",
    "seconds",
)


def tables(rows: Sequence[RowValues], tasks: Mapping[str, LearnerTask] = TASKS) -> list[Table]:
    """Return counts of better and worse tasks, a table per model, and the selected models."""
    shown = [
        (model, [row for row in rows if row["model"] == model])
        for model in MODELS
        if any(row["model"] == model for row in rows)
    ]
    return [
        _counts(shown, tasks),
        *(_table(model, group, tasks) for model, group in shown),
        _choices(rows, tasks),
    ]


def _counts(
    shown: Sequence[tuple[str, Sequence[RowValues]]], tasks: Mapping[str, LearnerTask]
) -> Table:
    lines = []
    for model, rows in shown:
        verdicts = [_verdict(group) for _, group in _by_task(rows, tasks)]
        counts = [verdicts.count(word) for word in ("better", "level", "worse")]
        lines.append((Cell(model), *(Cell.of_number(n, "{}") for n in (len(verdicts), *counts))))
    columns = ("model", "tasks", "better", "level", "worse")
    return Table("Tasks on which the learner decides better than 2-stage", columns, tuple(lines))


def _table(model: str, rows: Sequence[RowValues], tasks: Mapping[str, LearnerTask]) -> Table:
    lines = tuple(_line(tasks[name], group) for name, group in _by_task(rows, tasks))
    return Table(f"Model: {model}. Test regret relative to the optimum", _COLUMNS, lines)


def _line(task: LearnerTask, rows: Sequence[RowValues]) -> tuple[Cell, ...]:
    difference, error = _difference(rows)
    return (
        Cell(task.title),
        Cell.of_number(len(rows), "{}"),
        *(
            Cell.of_number(_mean(rows, name), "{:.4f}")
            for name in ("constant", "two_stage", "learner")
        ),
        Cell.of_number(difference, "{:+.4f}"),
        Cell.of_number(error, "{:.4f}"),
        Cell(_verdict(rows)),
        Cell(", ".join(f"{row['difference']:+.4f}" for row in rows)),
        Cell.of_number(_mean(rows, "oracle_calls"), "{:,.0f}"),
        Cell.of_number(_mean(rows, "cpu_seconds"), "{:.0f}"),
    )


def _choices(rows: Sequence[RowValues], tasks: Mapping[str, LearnerTask]) -> Table:
    lines = tuple(
        (
            Cell(tasks[row["task"]].title),
            Cell(row["model"]),
            Cell.of_number(row["seed"], "{}"),
            Cell(row["chosen"]),
        )
        for row in rows
    )
    return Table("What was chosen", ("task", "model", "seed", "kept"), lines)


def _by_task(
    rows: Sequence[RowValues], tasks: Mapping[str, LearnerTask]
) -> list[tuple[str, list[RowValues]]]:
    groups = [(name, [row for row in rows if row["task"] == name]) for name in tasks]
    return [(name, group) for name, group in groups if group]


def _difference(rows: Sequence[RowValues]) -> tuple[float, float]:
    """Return the mean difference over data seeds, and its standard error from test instances."""
    errors = np.array([row["standard_error"] for row in rows])
    return _mean(rows, "difference"), float(np.sqrt(np.square(errors).sum()) / len(rows))


def _verdict(rows: Sequence[RowValues]) -> str:
    """Return whether the mean difference is more than one standard error from zero."""
    difference, error = _difference(rows)
    if abs(difference) <= error:
        return "level"
    return "better" if difference < 0 else "worse"


def _mean(rows: Sequence[RowValues], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))
