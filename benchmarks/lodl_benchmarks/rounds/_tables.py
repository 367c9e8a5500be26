"""Tables of the rows: each task by itself, and what was to be reached."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from lodl.report import Cell, Table
from lodl_benchmarks.rounds._methods import METHODS
from lodl_benchmarks.rounds._tasks import TASKS, RoundsTask
from lodl_benchmarks.runner import RowValues

_BASELINE = "2-stage"


def tables(rows: Sequence[RowValues], tasks: Mapping[str, RoundsTask] = TASKS) -> list[Table]:
    """Return the goals, then a table per task, of rows of any number of seeds."""
    by_task = {name: [row for row in rows if row["domain"] == name] for name in tasks}
    shown = {name: group for name, group in by_task.items() if group}
    return [
        _goals(shown, tasks),
        *(_table(tasks[name], group) for name, group in shown.items()),
    ]


def _goals(rows: Mapping[str, Sequence[RowValues]], tasks: Mapping[str, RoundsTask]) -> Table:
    lines = []
    for name, group in rows.items():
        task = tasks[name]
        judged = _by_seed(group, task.judged)
        if task.goal is None or task.max_calls is None or not judged:
            continue
        value = _mean(judged, "test")
        calls = max(row["oracle_calls"] for row in judged.values())
        is_reached = value >= task.goal if task.is_quality else value <= task.goal
        is_reached = is_reached and calls <= task.max_calls
        lines.append(
            (
                Cell(task.title),
                Cell(task.measure),
                Cell.of_number(task.goal, "{:.3f}"),
                Cell.of_number(task.max_calls, "{:,}"),
                Cell(task.judged),
                Cell.of_number(value, "{:.4f}"),
                Cell.of_number(calls, "{:,}"),
                Cell("yes" if is_reached else "no"),
            )
        )
    columns = ("task", "measure", "goal", "with at most", "method", "test", "calls", "reached")
    return Table("What was to be reached, and what is", columns, tuple(lines))


def _table(task: RoundsTask, rows: Sequence[RowValues]) -> Table:
    baseline = _by_seed(rows, _BASELINE)
    lines = tuple(
        _line(name, group, baseline) for name in METHODS if (group := _by_seed(rows, name))
    )
    columns = (
        "method",
        f"test {task.measure}",
        "less 2-stage, by seed",
        "validation",
        "oracle calls",
        "validation looks",
        "calls of all models",
        "seconds asking",
        "seconds training",
    )
    return Table(f"{task.title}, {len(baseline)} data seeds", columns, lines)


def _line(
    name: str, rows: Mapping[int, RowValues], baseline: Mapping[int, RowValues]
) -> tuple[Cell, ...]:
    difference = [
        row["test"][0] - baseline[seed]["test"][0] for seed, row in rows.items() if seed in baseline
    ]
    return (
        Cell(name),
        _spread([row["test"][0] for row in rows.values()]),
        Cell("") if name == _BASELINE else Cell(", ".join(f"{d:+.4f}" for d in difference)),
        Cell.of_number(_mean(rows, "validation"), "{:.4f}"),
        Cell.of_number(_mean(rows, "oracle_calls"), "{:,.0f}"),
        Cell.of_number(_mean(rows, "validation_looks"), "{:,.0f}"),
        Cell.of_number(_mean_of(all_calls(row) for row in rows.values()), "{:,.0f}"),
        Cell.of_number(_mean(rows, "seconds_sampling"), "{:.1f}"),
        Cell.of_number(_mean(rows, "seconds_training"), "{:.1f}"),
    )


def _by_seed(rows: Sequence[RowValues], method: str) -> dict[int, RowValues]:
    return {
        row["seed"]: row
        for row in sorted(rows, key=lambda row: row["seed"])
        if row["method"] == method
    }


def _mean(rows: Mapping[int, RowValues], name: str) -> float:
    return _mean_of(row[name] for row in rows.values())


def _mean_of(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def all_calls(row: RowValues) -> float:
    """Return the calls for all initialisations and learning rates; a learned loss serves all."""
    calls: float = row.get("calls_of_all_models", row["oracle_calls"])
    return calls


def _spread(values: Sequence[float]) -> Cell:
    return Cell(f"{np.mean(values):.4f} ± {np.std(values):.4f}", float(np.mean(values)))
