"""Summary of the rows: regrets with their errors, paired by data seed and test instance."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import t as student

from lodl._typing import Array
from lodl_benchmarks.pages import t_test
from lodl_benchmarks.peers._methods import METHODS, ONE_MODEL, OURS, VARIANTS


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences, with its standard error."""

    mean: float  # mean over data seeds and test instances
    error: float  # standard error: that over seeds, at least that over test instances
    n_seeds: int  # number of data seeds

    @classmethod
    def of(cls, differences: Array) -> "Difference":
        """Summarise differences of shape (seeds, blocks of test instances)."""
        n_seeds, n_blocks = differences.shape
        within = differences.var(axis=1, ddof=1).mean() / (n_blocks * n_seeds)
        between = differences.mean(axis=1).var(ddof=1) / n_seeds if n_seeds > 1 else 0.0
        return cls(float(differences.mean()), float(np.sqrt(max(within, between))), n_seeds)

    @property
    def half_width(self) -> float:
        """Half of the interval of 95 %."""
        return float(student.ppf(0.975, max(self.n_seeds - 1, 1))) * self.error

    @property
    def p_value(self) -> float:
        """Two-sided p-value of a t-test over data seeds. One seed shows nothing: 1."""
        return t_test(self.mean, self.error, self.n_seeds)


@dataclass(frozen=True, eq=False)
class Score:
    """A method on a task."""

    task: str  # name of the task
    method: str  # name of the method
    blocks: Mapping[int, Array]  # test regret of blocks of instances, by data seed
    calls: float  # mean of the oracle calls for training, of all models that were tried
    looks: float  # mean of the calls at held-out instances that stop and choose, counted apart
    # Mean of the calls to train one model, everything chosen; None for our learner.
    calls_of_one: float | None
    # Mean of the processor's seconds in the solver, of the rows that have them.
    seconds_solving: float | None
    seconds: float | None  # mean of the processor's seconds of all models

    @property
    def all_calls(self) -> float:
        """Mean of all solver calls, looks included: a single model needs none, but the harness."""
        return self.calls + (0.0 if self.method in ONE_MODEL else self.looks)

    def seconds_with(self, seconds_a_call: float) -> float:
        """Return CPU seconds if a call took so long: measured without the solver, and calls."""
        return (
            (self.seconds or 0.0)
            - (self.seconds_solving or 0.0)
            + (seconds_a_call * self.all_calls)
        )

    @property
    def regret(self) -> float:
        """Mean relative test regret over the data seeds."""
        return float(np.mean([block.mean() for block in self.blocks.values()]))

    def on(self, seeds: Iterable[int]) -> "Score":
        """Return the score on some of its data seeds; regrets of other seeds do not compare."""
        return replace(self, blocks={seed: self.blocks[seed] for seed in seeds})

    def less(self, other: "Score") -> Difference:
        """Return the paired difference to another method, on the seeds that both have."""
        seeds = sorted(set(self.blocks) & set(other.blocks))
        return Difference.of(np.stack([self.blocks[s] - other.blocks[s] for s in seeds]))


def scores(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Score]]:
    """Return the methods of each task, tasks and methods in the order of the rows.

    If a row was computed again, with another learner or other settings, the last row counts.
    """
    latest = {(row["task"], row["method"], row["seed"]): row for row in rows}
    groups: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for (task, method, _), row in latest.items():
        groups.setdefault(task, {}).setdefault(method, []).append(row)
    return {
        task: {
            method: _score(task, method, rows_of_method)
            for method, rows_of_method in methods.items()
        }
        for task, methods in groups.items()
    }


def _score(task: str, method: str, rows: Sequence[Mapping[str, Any]]) -> Score:
    def mean(name: str) -> float | None:
        values = [row[name] for row in rows if name in row]
        return float(np.mean(values)) if values else None

    return Score(
        task,
        method,
        {row["seed"]: np.array(row["test_blocks"]) for row in rows},
        mean("oracle_calls") or 0.0,
        mean("looks") or 0.0,
        mean("calls_of_one"),
        mean("cpu_seconds_solving"),
        mean("cpu_seconds"),
    )


def complete_methods(by_task: Mapping[str, Mapping[str, Score]]) -> list[str]:
    """Return the methods that every task has on all seeds of our learner."""
    tasks = [
        (of_task, len(of_task.get(OURS, max(of_task.values(), key=lambda s: len(s.blocks))).blocks))
        for of_task in by_task.values()
    ]
    return [
        method
        for method in METHODS
        if method not in VARIANTS
        and tasks
        and all(method in of and len(of[method].blocks) >= n for of, n in tasks)
    ]


def regrets(by_task: Mapping[str, Mapping[str, Score]], methods: Sequence[str]) -> Array:
    """Return regrets of shape (tasks, methods), on the seeds that all methods have."""
    found = []
    for of_task in by_task.values():
        seeds = set.intersection(*(set(of_task[method].blocks) for method in methods))
        found.append([of_task[method].on(seeds).regret for method in methods])
    return np.array(found).reshape(len(found), len(methods))


def ranks(by_task: Mapping[str, Mapping[str, Score]], methods: Sequence[str]) -> dict[str, Array]:
    """Return the rank of each method on every task, 1 is the best, on the seeds that all have."""
    places = 1 + np.argsort(np.argsort(regrets(by_task, methods), axis=1), axis=1)
    return {method: places[:, i].astype(np.float64) for i, method in enumerate(methods)}


def mean_rank_interval(places: Array, *, n_draws: int = 10_000) -> tuple[float, float]:
    """Return the interval of 95 % of a mean rank, by drawing tasks again with replacement."""
    drawn = np.random.default_rng(0).choice(places, size=(n_draws, len(places))).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def profile(by_task: Mapping[str, Mapping[str, Score]], methods: Sequence[str]) -> dict[str, Array]:
    """Return, for each method, its regret over the least of all methods on every task, sorted.

    The k-th of m values is the factor within which the method is on k of m tasks (Dolan and Moré).
    """
    of_all = regrets(by_task, methods)
    ratios = np.sort(of_all / of_all.min(axis=1, keepdims=True), axis=0)
    return {method: ratios[:, i] for i, method in enumerate(methods)}
