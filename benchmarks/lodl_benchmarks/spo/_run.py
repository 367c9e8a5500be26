"""Runs the methods on draws of the founding data, and keeps a row for each."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from lodl_benchmarks.runner import Computation, RowValues, Trial, complete_rows, learner_digest
from lodl_benchmarks.spo._methods import METHODS, OF_PORTFOLIOS, Learner, mean_cost
from lodl_benchmarks.spo._tasks import CELLS, PATH, Cell


def plan(
    cells: Sequence[str], methods: Sequence[str], draws: Mapping[int, Sequence[int]]
) -> list[Trial]:
    """Return all trials, method by method, then draw by draw, of methods that cells can have."""
    return [
        Trial(cell, method, seed)
        for method in methods
        for n in dict.fromkeys(CELLS[cell].n for cell in cells)
        for seed in draws[n]
        for cell in cells
        if CELLS[cell].n == n and (CELLS[cell].problem == PATH or method in OF_PORTFOLIOS)
    ]


def run(
    trials: Sequence[Trial],
    out: Path,
    *,
    cells: Mapping[str, Cell] = CELLS,
    n_jobs: int | None = 1,
    progress: bool = True,
) -> list[RowValues]:
    """Run what has no row yet and return the rows of all, in order, as JSON values."""
    computations = [
        Computation(_identity(trial, cells[trial.task]), partial(_measure, trial, cells))
        for trial in trials
    ]
    return complete_rows(computations, out, description="SPO+", n_jobs=n_jobs, progress=progress)


def _measure(trial: Trial, cells: Mapping[str, Cell]) -> RowValues:
    domain = cells[trial.task].build(trial.seed)
    started = time.process_time()
    outcome = METHODS[trial.method](domain)
    seconds = time.process_time() - started
    test = domain.splits.test
    best = mean_cost(domain, test.y, test.y)
    return {
        "percent": 100 * (mean_cost(domain, outcome.y_hat, test.y) - best) / abs(best),
        "cpu_seconds": seconds,
        "oracle_calls": outcome.n_calls,
        "note": outcome.note,
    }


def _identity(trial: Trial, cell: Cell) -> RowValues:
    """Return what distinguishes a row from others, as JSON values."""
    is_ours = isinstance(METHODS[trial.method], Learner)
    return {
        "task": trial.task,
        "method": trial.method,
        "seed": trial.seed,
        "data": cell.data(trial.seed),
        "settings": learner_digest() if is_ours else "",
    }
