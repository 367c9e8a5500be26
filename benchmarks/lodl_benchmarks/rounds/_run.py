"""Runs the methods on the tasks, and keeps a row for each."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lodl._typing import Array
from lodl.domains import Domain, Split
from lodl.evaluation import decision_loss, regret
from lodl_benchmarks.quality import normalised_decision_quality
from lodl_benchmarks.rounds._loop import N_INITIALISATIONS
from lodl_benchmarks.rounds._methods import METHODS, Method, Run
from lodl_benchmarks.rounds._tasks import TASKS, RoundsTask
from lodl_benchmarks.runner import Computation, RowValues, Trial, complete_rows


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
    tasks: Mapping[str, RoundsTask] = TASKS,
    methods: Mapping[str, Method] = METHODS,
    n_jobs: int | None = None,
    progress: bool = True,
) -> list[RowValues]:
    """Run what has no row yet and return the rows of all, in order, as JSON values."""
    computations = [
        Computation(
            _identity(t, tasks[t.task], methods[t.method]),
            partial(_measure, t, tasks[t.task], methods[t.method], out),
        )
        for t in trials
    ]
    return complete_rows(computations, out, description="rounds", n_jobs=n_jobs, progress=progress)


def _measure(trial: Trial, task: RoundsTask, method: Method, out: Path) -> RowValues:
    """Run one trial and return what came out of it."""
    started = time.perf_counter()
    domain = task.build(trial.seed)
    answers = out / "answers" / f"{trial.task}-{trial.seed}"
    outcome = method.run(Run(task, domain, trial.seed, answers))
    splits, y_hat = domain.splits, outcome.y_hat
    return {
        "measure": task.measure,
        "validation": [_score(task, domain, splits.validation, y_hat.validation)],
        "test": [_score(task, domain, splits.test, y_hat.test)],
        "oracle_calls": outcome.oracle_calls,
        "validation_looks": outcome.n_looks,
        "seconds_sampling": outcome.seconds_asking,
        "seconds_training": outcome.seconds_training,
        "seconds": time.perf_counter() - started,
        **outcome.details,
    }


def _score(task: RoundsTask, domain: Domain, part: Split, y_hat: Array) -> float:
    problem, context = domain.problem, part.context
    if task.measure == "normalised quality":
        return normalised_decision_quality(problem, y_hat, part.y, context=context)
    regrets = regret(problem, y_hat, part.y, context=context)
    best = decision_loss(problem, part.y, part.y, context=context)
    return float(regrets.sum() / np.abs(best).sum())


def _identity(trial: Trial, task: RoundsTask, method: Method) -> dict[str, Any]:
    """Return what distinguishes a row from others, as JSON values."""
    return {
        "domain": trial.task,
        "method": trial.method,
        "seed": trial.seed,
        "data": task.data(trial.seed),
        "settings": repr(method),
        "training": task.settings(),
        "n_initialisations": N_INITIALISATIONS,
    }
