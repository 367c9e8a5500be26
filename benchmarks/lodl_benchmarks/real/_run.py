"""Rows of real tasks: each method's test regret, and how it differs from simple methods."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from lodl import DecisionFocusedRegressor
from lodl._typing import Array
from lodl.evaluation import regret
from lodl.oracle import Oracle
from lodl_benchmarks.pages import read_json_rows
from lodl_benchmarks.real._practice import (
    N_FOLDS,
    Outcome,
    corrected,
    mean_label,
    plain,
    quantile,
    shifted,
)
from lodl_benchmarks.real._split import Split
from lodl_benchmarks.real._spo_plus import spo_plus
from lodl_benchmarks.real._tasks import MODELS, TASKS, TIME_ORDER, estimator
from lodl_benchmarks.runner import Computation, RowValues, complete_rows

BASELINE, LEARNER = "squared error", "learner"
PRACTICE: Mapping[str, Callable[[Split, Any], Outcome]] = {
    "plain": plain,
    "mean label": mean_label,
    "shifted": shifted,
    "corrected": corrected,
    "quantile": quantile,
    "SPO+": spo_plus,
}
METHODS = (*PRACTICE, BASELINE, LEARNER)
REFERENCES = ("plain", "shifted", "corrected")
"""Methods that every method is compared with, instance by instance."""

_NAMES = ("task", "model", "method", "seed", "choosing")  # values that identify a row
_DAYS_PER_BLOCK = 7  # days of a week err alike: differences are averaged before their error


@dataclass(frozen=True)
class RealTrial:
    """A method with a model on a split of a task, from the files of a folder."""

    folder: Path
    task: str
    model: str
    method: str
    seed: int = TIME_ORDER
    choosing: bool = False


def plan(
    folder: Path,
    tasks: Sequence[str],
    models: Sequence[str],
    methods: Sequence[str],
    n_seeds: int,
    *,
    choosing: bool = False,
) -> list[RealTrial]:
    """Return all trials: those in time order first, then those of `n_seeds` random splits."""
    return [
        RealTrial(folder, task, model, method, seed, choosing)
        for seed in range(n_seeds + 1)
        for task in tasks
        if seed == TIME_ORDER or TASKS[task].has_random_splits
        for model in TASKS[task].models
        if model in models
        for method in methods
        if _applies(method, task, model)
    ]


def _applies(method: str, task: str, model: str) -> bool:
    """Return whether a method is for such tasks: costs of shortage and excess, or linear ones."""
    is_linear = task.startswith("semo") or task == "reserve-crews"
    if method == "quantile":
        return not is_linear
    return method != "SPO+" or (is_linear and MODELS[model] != "lightgbm")


def run(trials: Sequence[RealTrial], out: Path, *, progress: bool = True) -> list[RowValues]:
    """Run the trials that have no row yet, and return the rows of all.

    Trials run one after another in this process, so that the times of methods are comparable.
    """
    computations = [Computation(_identity(trial), partial(_measure, trial)) for trial in trials]
    return complete_rows(computations, out, description="real tasks", progress=progress)


def stored_rows(out: Path, *, choosing: bool = False) -> list[RowValues]:
    """Return the last row of each trial in a folder, by seed."""
    rows = [row for _, row in read_json_rows(out / "rows.jsonl") if row["choosing"] == choosing]
    last = {tuple(row[name] for name in _NAMES): row for row in rows}
    return sorted(last.values(), key=lambda row: row["seed"])


def _identity(trial: RealTrial) -> RowValues:
    return {name: getattr(trial, name) for name in _NAMES}


def _measure(trial: RealTrial) -> RowValues:
    """Evaluate a method on the test instances."""
    split = _split(trial.folder, trial.task, trial.model, trial.seed, trial.choosing)
    outcome, seconds = _outcome(trial)
    regrets = _regrets(split, outcome.y_hat)
    row = {
        "regret": float(regrets.mean()),
        "optimum": _optimum(split),
        "n_calls": outcome.n_calls,
        "cpu_seconds": seconds,
        "note": outcome.note,
        "n_train": len(split.y_train),
        "n_test": len(split.y_test),
    }
    if outcome.promised is not None:
        baseline, _ = _outcome(_with_method(trial, BASELINE))
        row["promised"] = list(outcome.promised)
        row["gain"] = float((_regrets(split, baseline.y_hat) - regrets).mean())
    for reference in REFERENCES:
        other, _ = _outcome(_with_method(trial, reference))
        difference = regrets - _regrets(split, other.y_hat)
        row[f"less_{reference}"] = float(difference.mean())
        row[f"error_{reference}"] = _standard_error(difference, split.is_ordered)
    return row


def _with_method(trial: RealTrial, method: str) -> RealTrial:
    return RealTrial(trial.folder, trial.task, trial.model, method, trial.seed, trial.choosing)


@lru_cache(maxsize=4)
def _split(folder: Path, task: str, model: str, seed: int, choosing: bool) -> Split:
    return TASKS[task].read(folder, model, seed, choosing)


@lru_cache(maxsize=len(METHODS))
def _outcome(trial: RealTrial) -> tuple[Outcome, float]:
    """Return a method's outcome and its CPU seconds."""
    split = _split(trial.folder, trial.task, trial.model, trial.seed, trial.choosing)
    if trial.method in PRACTICE:
        started = time.process_time()
        outcome = PRACTICE[trial.method](split, estimator(trial.model, split))
        return outcome, time.process_time() - started
    baseline, learner, seconds = _fit_learner(_with_method(trial, LEARNER))
    return (baseline if trial.method == BASELINE else learner), seconds


@lru_cache(maxsize=1)
def _fit_learner(trial: RealTrial) -> tuple[Outcome, Outcome, float]:
    """Fit the learner with its defaults, and return its baseline and what it selected."""
    split = _split(trial.folder, trial.task, trial.model, trial.seed, trial.choosing)
    oracle = Oracle(split.problem, progress=False)
    model = DecisionFocusedRegressor(oracle, estimator(trial.model, split))
    blocks = KFold(N_FOLDS) if split.is_ordered else None
    started = time.process_time()
    model.fit(split.x_train, split.y_train, context=split.context_train, validation=blocks)
    seconds = time.process_time() - started
    baseline = Outcome(np.asarray(model.baseline_.predict(split.x_test)))
    result, y_hat = model.result_, np.asarray(model.predict(split.x_test))
    promised = None if result.gain.mean == 0 else (result.gain.low, result.gain.high)
    selected = Outcome(y_hat, oracle.n_calls, result.selected_name, promised)
    return baseline, selected, seconds


def _regrets(split: Split, y_hat: Array) -> Array:
    return np.asarray(regret(split.problem, y_hat, split.y_test, context=split.context_test))


def _optimum(split: Split) -> float:
    """Return the mean objective of the best decisions for the test labels."""
    contexts = [None] * len(split.y_test) if split.context_test is None else split.context_test
    problem = split.problem
    pairs = zip(split.y_test, contexts, strict=True)
    return float(np.mean([problem.objective(problem.solve(y, c), y, c) for y, c in pairs]))


def _standard_error(differences: Array, is_ordered: bool) -> float:
    """Return the error of a mean difference, from means over weeks if instances are in order."""
    size = _DAYS_PER_BLOCK if is_ordered else 1
    n = len(differences) // size
    means = differences[: n * size].reshape(n, size).mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(n))
