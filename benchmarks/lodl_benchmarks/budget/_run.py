"""Runs the methods on trials of both settings, and tables of what budgets achieve."""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from lodl._typing import Array
from lodl.report import Cell, Table
from lodl_benchmarks.budget._methods import METHODS, Data, treatments_by_price
from lodl_benchmarks.budget._trial import SETTINGS
from lodl_benchmarks.runner import Computation, RowValues, Trial, complete_rows, learner_digest

BUDGETS = (0.1, 0.2, 0.4, 0.7, 1.0, 1.5)
"""Money per customer; batches have 0.2 to 1.0."""

_N_TEST = 200_000
_LEVEL = 0.95  # of intervals


def plan(settings: Sequence[str], methods: Sequence[str], seeds: Sequence[int]) -> list[Trial]:
    """Return all trials, seed by seed, so that methods find the labels of those before them."""
    return [Trial(name, method, seed) for name in settings for seed in seeds for method in methods]


def run(
    trials: Sequence[Trial], out: Path, *, n: int = 100_000, way: float = 1.0, progress: bool = True
) -> list[RowValues]:
    """Run what has no row yet and return the rows of all, in order, as JSON values."""
    computations = [
        Computation(_identity(trial, n, way), partial(_measure, trial, n, way)) for trial in trials
    ]
    return complete_rows(computations, out, description="budget", progress=progress)


def _identity(trial: Trial, n: int, way: float) -> RowValues:
    return {
        "task": trial.task,
        "method": trial.method,
        "seed": trial.seed,
        "n": n,
        "way": way,
        "settings": learner_digest() if METHODS[trial.method].is_learner else "",
    }


@lru_cache(maxsize=1)  # methods of a seed share the labels
def _data(setting: str, seed: int, n: int, way: float) -> Data:
    return Data(SETTINGS[setting].draw(seed, n, "train"), way=way)


def _measure(trial: Trial, n: int, way: float) -> RowValues:
    """Return the true value of each budget, in per cent of what the true effects achieve."""
    data = _data(trial.task, trial.seed, n, way)
    method, started = METHODS[trial.method], time.process_time()
    predict = method.fit(data)
    seconds = time.process_time() - started
    test = SETTINGS[trial.task].draw(trial.seed, _N_TEST, "test")
    predicted, truth, percent = predict(test.x), test.effects, {}
    assert truth is not None
    for budget in BUDGETS:
        money = budget * len(truth)
        best = _value(treatments_by_price(truth, money), truth)
        percent[str(budget)] = 100 * _value(method.choose(predicted, money), truth) / best
    return {"percent": percent, "cpu_seconds": seconds}


def _value(treatments: npt.NDArray[Any], effects: Array) -> float:
    """Return the sum of the effects of treatments; -1 has none."""
    treated = np.flatnonzero(treatments >= 0)
    return float(effects[treated, treatments[treated]].sum())


def tables(rows: Sequence[RowValues]) -> list[Table]:
    """Return what each method achieves, and how much more our learner does on the same seeds."""
    return [
        table
        for setting in SETTINGS
        if (chosen := [row for row in rows if row["task"] == setting])
        for table in _tables_of(setting, chosen)
    ]


def _tables_of(setting: str, rows: Sequence[RowValues]) -> Iterator[Table]:
    by_method: dict[str, dict[int, Mapping[str, float]]] = {}
    for row in sorted(rows, key=lambda row: list(METHODS).index(row["method"])):
        by_method.setdefault(row["method"], {})[row["seed"]] = row["percent"]
    budgets = [f"budget {budget}" for budget in BUDGETS]
    what = "true value, in % of what the true effects achieve, mean ± deviation over seeds"
    lines = []
    for name, of in by_method.items():
        cells = (_cell(np.array([p[str(b)] for p in of.values()]), "±") for b in BUDGETS)
        lines.append((Cell(name), Cell(str(len(of)), len(of)), *cells))
    yield Table(f"Setting {setting}: {what}", ("method", "seeds", *budgets), tuple(lines))
    for ours in (name for name in by_method if METHODS[name].is_learner):
        gaps = [
            (Cell(name), *(_cell(_gaps(by_method[ours], of, b), "[]") for b in BUDGETS))
            for name, of in by_method.items()
            if name != ours and of.keys() & by_method[ours].keys()
        ]
        yield Table(f"Setting {setting}: {ours} less ...", ("method", *budgets), tuple(gaps))


def _gaps(
    ours: Mapping[int, Mapping[str, float]], other: Mapping[int, Mapping[str, float]], budget: float
) -> Array:
    """Return paired differences, on the seeds of both."""
    seeds = sorted(ours.keys() & other.keys())
    return np.array([ours[seed][str(budget)] - other[seed][str(budget)] for seed in seeds])


def _cell(values: Array, spread: str) -> Cell:
    """Return a mean with its deviation, or with its interval if that is wanted."""
    mean, n = float(values.mean()), len(values)
    deviation = float(values.std(ddof=1)) if n > 1 else np.nan
    if spread == "±":
        return Cell(f"{mean:.2f} ± {deviation:.2f}", mean)
    half = student.ppf((1 + _LEVEL) / 2, n - 1) * deviation / np.sqrt(n) if n > 1 else np.nan
    return Cell(f"{mean:+.2f} ({mean - half:.2f} to {mean + half:.2f})", mean)
