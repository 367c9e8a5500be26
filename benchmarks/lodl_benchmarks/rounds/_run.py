"""Runs the methods on the tasks, and keeps a row for each."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lodl._threads import one_torch_thread
from lodl._typing import Array
from lodl.domains import Domain, Instances
from lodl.evaluation import decision_loss, normalised_decision_quality, regret
from lodl_benchmarks.rounds._loop import N_INITIALISATIONS
from lodl_benchmarks.rounds._methods import METHODS, Method, Run
from lodl_benchmarks.rounds._tasks import TASKS, Task
from lodl_benchmarks.runner import (
    RowValues,
    complete_rows,
    fingerprint,
    keep_freed_memory,
    versions,
)

_Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True)
class Trial:
    """One row to be: a method on a task with the data of a seed."""

    task: str
    method: str
    seed: int


def plan(tasks: Sequence[str], n_seeds: int) -> list[Trial]:
    """Return all methods that apply to the tasks, on the data of the seeds 1 to `n_seeds`."""
    return [
        Trial(task, method, seed)
        for task in tasks
        for seed in range(1, n_seeds + 1)
        for method in TASKS[task].methods
    ]


def run(
    trials: Sequence[Trial],
    out: Path,
    *,
    tasks: Mapping[str, Task] = TASKS,
    methods: Mapping[str, Method] = METHODS,
    n_jobs: int | None = None,
    progress: bool = True,
) -> list[RowValues]:
    """Run what has no row yet and return the rows of all, in order, as JSON values.

    Args:
        trials: What to run.
        out: Folder of `rows.jsonl` and of the oracle's answers; what is there is not asked again.
        tasks: The tasks by name.
        methods: The methods by name.
        n_jobs: Workers, as in joblib.
        progress: Whether to show bars on a terminal.
    """
    computations = [
        (
            _identity(t, tasks[t.task], methods[t.method]),
            partial(_run_one, t, tasks[t.task], methods[t.method], out),
        )
        for t in trials
    ]
    return complete_rows(
        out / "rows.jsonl",
        computations,
        key=_key,
        description="rounds",
        n_jobs=n_jobs,
        progress=progress,
    )


@one_torch_thread()
def _run_one(trial: Trial, task: Task, method: Method, out: Path) -> dict[str, Any]:
    """Run one trial in a worker, on one thread, and return its row as JSON values."""
    keep_freed_memory()
    started = time.perf_counter()
    domain = task.build(trial.seed)
    answers = out / "answers" / f"{trial.task}-{trial.seed}"
    outcome = method.run(Run(task, domain, trial.seed, answers))
    splits, y_hat = domain.splits, outcome.y_hat
    return {
        **_identity(trial, task, method),
        "measure": task.measure,
        "validation": [_measured(task, domain, splits.validation, y_hat.validation)],
        "test": [_measured(task, domain, splits.test, y_hat.test)],
        "oracle_calls": outcome.oracle_calls,
        "validation_looks": outcome.n_looks,
        "seconds_sampling": outcome.seconds_asking,
        "seconds_training": outcome.seconds_training,
        "seconds": time.perf_counter() - started,
        **outcome.details,
        "versions": versions(),
    }


def _measured(task: Task, domain: Domain, part: Instances, y_hat: Array) -> float:
    problem, context = domain.problem, part.context
    if task.measure == "normalised quality":
        return normalised_decision_quality(problem, y_hat, part.y, context=context, progress=False)
    regrets = regret(problem, y_hat, part.y, context=context, progress=False)
    best = decision_loss(problem, part.y, part.y, context=context, progress=False)
    return float(regrets.sum() / np.abs(best).sum())


def _identity(trial: Trial, task: Task, method: Method) -> dict[str, Any]:
    """Return what distinguishes a row from others, as JSON values."""
    return {
        "domain": trial.task,
        "method": trial.method,
        "seed": trial.seed,
        "data": fingerprint(task.build, trial.seed),
        "settings": repr(method),
        "training": task.settings(),
        "n_initialisations": N_INITIALISATIONS,
    }


def _key(row: RowValues) -> _Key:
    """Return what names a row, and the version that made it: other code, another row."""
    training = tuple(sorted((name, str(value)) for name, value in row["training"].items()))
    names = ("domain", "method", "seed", "data", "settings", "n_initialisations")
    return *(row[name] for name in names), training, row.get("versions", versions())["lodl"]
