"""Runs the methods on the tasks at a scale, and keeps a row for each."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lodl._typing import Array
from lodl_benchmarks.peers._counted import counted
from lodl_benchmarks.peers._evaluator import Evaluator
from lodl_benchmarks.peers._methods import METHODS, OURS, TWO_STAGE, Method, Ours
from lodl_benchmarks.peers._network import Architecture
from lodl_benchmarks.peers._tasks import TASKS, PeersTask
from lodl_benchmarks.peers._treatment import Data
from lodl_benchmarks.runner import Computation, RowValues, Trial, complete_rows, learner_digest

_CORE: tuple[str, ...] = (TWO_STAGE, "SPO+", "PFYL", "lsLTR", "NCE", OURS)


@dataclass(frozen=True)
class Scale:
    """Default tasks, methods and seeds of a run."""

    tasks: tuple[str, ...]  # names of the tasks
    methods: tuple[str, ...]  # names of the methods
    seeds: range  # data seeds
    n_initialisations: int  # models to average


SCALES: Mapping[str, Scale] = {
    "quick": Scale(("path-100-6", "knapsack-16", "newsvendor"), _CORE, range(1, 2), 2),
    "full": Scale(tuple(TASKS), tuple(METHODS), range(16, 36), 3),
}
"""The scales by name. Seeds 1 to 5 were looked at while the harness was built, 6 to 15 before the
learner's present defaults were chosen."""


N_BLOCKS = 50  # blocks of test instances whose means a row keeps: enough for paired intervals


def plan(tasks: Sequence[str], methods: Sequence[str], seeds: Sequence[int]) -> list[Trial]:
    """Return all trials, seed by seed. Methods skip tasks that they are not for."""
    return [
        Trial(task, method, seed)
        for seed in seeds
        for task in tasks
        for method in methods
        if _applies(TASKS[task], METHODS[method])
    ]


def _applies(task: PeersTask, method: Method) -> bool:
    """Return whether a method can be run on a task; variants of ours are for linear models."""
    is_variant = isinstance(method, Ours) and method.is_variant
    if is_variant and (task.hidden or not task.is_linear):
        return False
    return (task.is_linear or not method.needs_linear) and (
        task.has_paths or not method.needs_paths
    )


def run(
    trials: Sequence[Trial],
    out: Path,
    *,
    tasks: Mapping[str, PeersTask] = TASKS,
    methods: Mapping[str, Method] = METHODS,
    n_jobs: int | None = None,
    progress: bool = True,
) -> list[RowValues]:
    """Run what has no row yet and return the rows of all, in order, as JSON values."""
    computations = [
        Computation(
            _identity(t, tasks[t.task], methods[t.method]),
            partial(measure, t, tasks[t.task], methods[t.method]),
        )
        for t in trials
    ]
    return complete_rows(computations, out, description="peers", n_jobs=n_jobs, progress=progress)


def measure(trial: Trial, task: PeersTask, method: Method) -> RowValues:
    """Run one trial and return what came out of it."""
    domain = task.build(trial.seed)
    problem, ledger = counted(domain.problem)
    given, test = domain.splits.train_and_validation, domain.splits.test
    mean, deviation = given.x.mean(axis=0), given.x.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    with ledger.purpose("looks"):
        evaluator = Evaluator.of(problem, given)
    architecture = Architecture.of(given.x, given.y, task.hidden)
    data = Data((given.x - mean) / deviation, given.y, architecture, evaluator, ledger, trial.seed)
    started = time.process_time()
    outcome = method.run(data, task.treatment, (test.x - mean) / deviation)
    seconds = time.process_time() - started
    with ledger.purpose("test"):
        judge = Evaluator.of(problem, test)
        regret = judge.regret(outcome.y_hat, np.arange(len(test.y)))
    return {
        "test": float(regret.mean() / judge.scale),
        "test_blocks": _blocks(regret / judge.scale),
        "oracle_calls": ledger.calls["training"],
        "looks": ledger.calls["looks"],
        "cpu_seconds": seconds,
        "cpu_seconds_solving": ledger.seconds["training"] + ledger.seconds["looks"],
        **outcome.details,
    }


def _blocks(values: Array) -> list[float]:
    """Return means of blocks of instances, to five digits."""
    blocks = np.array_split(values, min(N_BLOCKS, len(values)))
    return [float(f"{block.mean():.5g}") for block in blocks]


def _identity(trial: Trial, task: PeersTask, method: Method) -> dict[str, Any]:
    """Return what distinguishes a row from others, as JSON values."""
    settings = f"{method!r} {asdict(task.treatment)}"
    if isinstance(method, Ours):
        settings = learner_digest()
    return {
        "task": trial.task,
        "method": trial.method,
        "seed": trial.seed,
        "data": task.data(trial.seed),
        "settings": settings,
        "hidden": list(task.hidden),
    }
