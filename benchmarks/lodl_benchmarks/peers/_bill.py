"""The bill of each method: regret against calls, and against CPU seconds by a call's price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lodl_benchmarks.peers._methods import ABLATIONS, BUDGETS, METHODS, ONE_MODEL, OURS, TWO_STAGE
from lodl_benchmarks.peers._summary import Score
from lodl_benchmarks.peers._tasks import LINEAR, TASKS

SECONDS_A_CALL: Mapping[str, float] = {"1 µs": 1e-6, "1 ms": 1e-3, "100 ms": 0.1}
"""How long a solver call may take, by its label."""

CURVES: Mapping[str, tuple[str, ...]] = {
    OURS: tuple(BUDGETS),
    "SPO+, one model": tuple(ONE_MODEL),
}
"""Methods that differ in the number of their calls alone, from few to many."""


@dataclass(frozen=True)
class Bill:
    """Geometric means of a method over linear tasks."""

    method: str
    n_seeds: int  # data seeds, of the task with the fewest
    regret: float  # over the regret of squared error
    calls: float  # solver calls for each instance, looks included
    measured: float  # CPU seconds with the solvers of the tasks
    seconds: tuple[float, ...]  # CPU seconds at each price of a call: computed


def bills(by_task: Mapping[str, Mapping[str, Score]]) -> list[Bill]:
    """Return the bills of the methods that all linear tasks have, but for 2-stage.

    Each is compared with 2-stage on the data seeds that it has.
    """
    linear = {name: by_task[name] for name in LINEAR if name in by_task}
    if not linear or not all({TWO_STAGE, OURS} <= of_task.keys() for of_task in linear.values()):
        return []
    return [
        _bill(method, linear)
        for method in METHODS
        if method not in (*ABLATIONS, TWO_STAGE)
        and all(method in of_task for of_task in linear.values())
    ]


def _bill(method: str, linear: Mapping[str, Mapping[str, Score]]) -> Bill:
    found = {name: of_task[method] for name, of_task in linear.items()}
    references = {name: linear[name][TWO_STAGE].on(score.blocks) for name, score in found.items()}
    return Bill(
        method,
        min(len(score.blocks) for score in found.values()),
        geometric_mean([score.regret / references[name].regret for name, score in found.items()]),
        geometric_mean([score.all_calls / (TASKS[name].n or 1) for name, score in found.items()]),
        geometric_mean([score.seconds or 0.0 for score in found.values()]),
        tuple(
            geometric_mean([score.seconds_with(seconds) for score in found.values()])
            for seconds in SECONDS_A_CALL.values()
        ),
    )


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive numbers."""
    return float(np.exp(np.log(np.maximum(values, 1e-12)).mean()))
