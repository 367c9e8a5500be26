"""Runs the learner on the tasks, and keeps a row for each."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lodl import DecisionFocusedRegressor
from lodl._typing import Array
from lodl.domains import Domain
from lodl.evaluation import decision_loss, regret
from lodl_benchmarks.learner._tasks import MODELS, TASKS, LearnerTask
from lodl_benchmarks.runner import Computation, RowValues, Trial, complete_rows


def plan(tasks: Sequence[str], models: Sequence[str], seeds: Sequence[int]) -> list[Trial]:
    """Return all trials by model, then by seed, then by task."""
    return [Trial(task, model, seed) for model in models for seed in seeds for task in tasks]


def run(
    trials: Sequence[Trial],
    out: Path,
    *,
    tasks: Mapping[str, LearnerTask] = TASKS,
    options: Mapping[str, Any] | None = None,
    progress: bool = True,
) -> list[RowValues]:
    """Run what has no row yet and return the rows of all, in order, as JSON values.

    Trials run one after another in this process: the learner itself is what is timed. `options` are
    arguments of the learner; the tables show its defaults.
    """
    given = options or {}
    computations = [
        Computation(_identity(t, tasks[t.task], given), partial(_measure, t, tasks[t.task], given))
        for t in trials
    ]
    return complete_rows(computations, out, description="learner", progress=progress)


def _measure(trial: Trial, task: LearnerTask, options: Mapping[str, Any]) -> RowValues:
    """Fit the learner once; 2-stage is the baseline that it trained and judged on the way."""
    domain = task.build(trial.seed)
    data, test = domain.splits.train_and_validation, domain.splits.test
    model = DecisionFocusedRegressor(domain.problem, MODELS[trial.method](data), **options)
    started, cpu = time.perf_counter(), time.process_time()
    model.fit(data.x, data.y, context=data.context, validation=task.validation)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    ours = _relative_regret(domain, model.predict(test.x))
    two_stage = _relative_regret(domain, model.baseline_.predict(test.x))
    constant = _relative_regret(domain, np.broadcast_to(data.y.mean(axis=0), test.y.shape))
    difference = ours - two_stage
    result = model.result_
    return {
        "two_stage": float(two_stage.mean()),
        "learner": float(ours.mean()),
        "constant": float(constant.mean()),
        "difference": float(difference.mean()),
        "standard_error": float(difference.std(ddof=1) / np.sqrt(len(difference))),
        "held_out_two_stage": result.mean_baseline,
        "held_out_learner": result.mean_selected,
        "oracle_calls": result.trials[-1].n_calls,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "chosen": result.selected_name,
        "n_train": len(data.y),
        "n_test": len(test.y),
    }


def _relative_regret(domain: Domain, y_hat: Array) -> Array:
    """Return the regret of each test instance, over the mean objective of the best decisions."""
    test = domain.splits.test
    how: dict[str, Any] = {"context": test.context}
    best = np.abs(decision_loss(domain.problem, test.y, test.y, **how).mean())
    return np.asarray(regret(domain.problem, y_hat, test.y, **how) / best)


def _identity(trial: Trial, task: LearnerTask, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what distinguishes a row from others, as JSON values."""
    return {
        "task": trial.task,
        "model": trial.method,
        "seed": trial.seed,
        "data": task.data(trial.seed),
        "options": {name: repr(value) for name, value in options.items()},
    }
