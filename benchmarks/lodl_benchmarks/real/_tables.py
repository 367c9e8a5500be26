"""Tables of the rows of real tasks: one per task and kind of split."""

from collections.abc import Iterable, Sequence

import numpy as np

from lodl.report import Cell, Table
from lodl_benchmarks.real._run import METHODS, REFERENCES
from lodl_benchmarks.real._tasks import TASKS, TIME_ORDER
from lodl_benchmarks.runner import RowValues

_Z = 1.96  # of an interval of 95 %
_COLUMNS = ("model", "method", "regret", "% of optimum", *(f"less {name}" for name in REFERENCES))
_COLUMNS += ("calls an instance", "CPU s", "selected")


def tables(rows: Sequence[RowValues]) -> list[Table]:
    """Return a table per task: splits in time order, then random splits, if there are any."""
    made = []
    for name, task in TASKS.items():
        for is_random in (False, True):
            group = [
                r for r in rows if r["task"] == name and is_random == (r["seed"] != TIME_ORDER)
            ]
            if group:
                seeds = len({row["seed"] for row in group})
                how = f"{seeds} random splits" if is_random else "time order"
                kind = ", choosing split" if group[0]["choosing"] else ""
                made.append(Table(f"{task.title}, {how}{kind}", _COLUMNS, tuple(_lines(group))))
    return made


def _lines(rows: Sequence[RowValues]) -> Iterable[tuple[Cell, ...]]:
    for model in dict.fromkeys(row["model"] for row in rows):
        for method in METHODS:
            group = [row for row in rows if (row["model"], row["method"]) == (model, method)]
            if group:
                yield _line(model, method, group)


def _line(model: str, method: str, rows: Sequence[RowValues]) -> tuple[Cell, ...]:
    regret, optimum = _mean(rows, "regret"), abs(_mean(rows, "optimum"))
    has_scale = optimum > 1e-6 * regret  # generation that follows the load costs nothing
    notes = dict.fromkeys(row["note"] for row in rows)
    return (
        Cell(model),
        Cell(method),
        Cell.of_number(regret, "{:.4g}"),
        Cell.of_number(100 * regret / optimum, "{:.2f}") if has_scale else Cell(""),
        *(Cell("" if name == method else _difference(rows, name)) for name in REFERENCES),
        Cell.of_number(np.mean([row["n_calls"] / row["n_train"] for row in rows]), "{:.0f}"),
        Cell.of_number(_mean(rows, "cpu_seconds"), "{:.1f}"),
        Cell(next(iter(notes)) if len(notes) == 1 else f"{len(notes)} different"),
    )


def _difference(rows: Sequence[RowValues], reference: str) -> str:
    """Return the mean difference with its interval of 95 %.

    Test instances of random splits overlap, so that several splits count for no more than all
    instances would.
    """
    square = np.mean([row[f"error_{reference}"] ** 2 for row in rows])
    n_splits = min(len(rows), 1 + rows[0]["n_train"] / rows[0]["n_test"])
    return f"{_mean(rows, f'less_{reference}'):+.3g} ± {_Z * np.sqrt(square / n_splits):.2g}"


def _mean(rows: Sequence[RowValues], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))
