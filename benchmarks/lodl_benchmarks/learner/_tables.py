"""Tables of the rows: what the learner gains on each task, a table per model."""

from collections.abc import Mapping, Sequence

import numpy as np

from lodl.report import Cell, Table
from lodl_benchmarks.learner._tasks import MODELS, TASKS, LearnerTask
from lodl_benchmarks.pages import holm, p_cell, plus_minus, t_test, verdict_of
from lodl_benchmarks.runner import RowValues

_COLUMNS = (
    "task",
    "seeds",
    "constant",
    "2-stage",
    "learner",
    "difference",
    "p",
    "p by Holm",
    "verdict",
    "by seed",
    "oracle calls",
    "CPU s",
)


_N_ERRORS = 2  # standard errors of a difference that counts


def tables(rows: Sequence[RowValues], tasks: Mapping[str, LearnerTask] = TASKS) -> list[Table]:
    """Return counts of better and worse tasks, a table per model, and the selected models.

    If a row was computed again, the last one counts.
    """
    rows = list({(row["task"], row["model"], row["seed"]): row for row in rows}.values())
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
        groups = [group for _, group in _by_task(rows, tasks)]
        gaps = list(map(_difference, groups))
        verdicts = _verdicts(groups)
        counts = (
            sum(mean < -_N_ERRORS * error for mean, error in gaps),
            sum(abs(mean) <= _N_ERRORS * error for mean, error in gaps),
            sum(mean > _N_ERRORS * error for mean, error in gaps),
            *(verdicts.count(word) for word in ("better", "worse")),
        )
        lines.append((Cell(model), *(Cell.of_number(n, "{}") for n in (len(groups), *counts))))
    by_error = ("better by two errors", "within two", "worse by two errors")
    columns = ("model", "tasks", *by_error, "better by Holm", "worse by Holm")
    return Table("Tasks on which the learner decides better than 2-stage", columns, tuple(lines))


def _table(model: str, rows: Sequence[RowValues], tasks: Mapping[str, LearnerTask]) -> Table:
    groups = _by_task(rows, tasks)
    ps = [_p_value(group) for _, group in groups]
    lines = tuple(
        _line(tasks[name], group, p, corrected)
        for (name, group), p, corrected in zip(groups, ps, holm(ps), strict=True)
    )
    return Table(f"Model: {model}. Test regret relative to the optimum", _COLUMNS, lines)


def _line(
    task: LearnerTask, rows: Sequence[RowValues], p: float, corrected: float
) -> tuple[Cell, ...]:
    difference, error = _difference(rows)
    return (
        Cell(task.title),
        Cell.of_number(len(rows), "{}"),
        *(
            Cell.of_number(_mean(rows, name), "{:.4f}")
            for name in ("constant", "two_stage", "learner")
        ),
        Cell(plus_minus(difference, error, signed=True), difference),
        p_cell(p),
        p_cell(corrected),
        Cell(verdict_of(difference, corrected)),
        Cell(", ".join(f"{row['difference']:+.4f}" for row in rows)),
        Cell.of_number(_mean(rows, "oracle_calls"), "{:,.0f}"),
        Cell.of_number(_mean(rows, "cpu_seconds"), "{:.1f}"),
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
    """Return the mean difference over data seeds, and its standard error.

    That is the error over seeds, at least that over test instances.
    """
    within = np.sqrt(np.square([row["standard_error"] for row in rows]).sum()) / len(rows)
    gaps = [row["difference"] for row in rows]
    between = np.std(gaps, ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else 0.0
    return _mean(rows, "difference"), float(max(within, between))


def _p_value(rows: Sequence[RowValues]) -> float:
    return t_test(*_difference(rows), len(rows))


def _verdicts(groups: Sequence[Sequence[RowValues]]) -> list[str]:
    """Return whether the learner is better on each task, by tests corrected for their number."""
    corrected = holm([_p_value(group) for group in groups])
    return [
        verdict_of(_difference(group)[0], p) for group, p in zip(groups, corrected, strict=True)
    ]


def _mean(rows: Sequence[RowValues], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))
