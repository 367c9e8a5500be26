"""The bill of each method: regret against calls, and against CPU seconds by a call's price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lodl_benchmarks.peers._methods import ABLATIONS, BUDGETS, ONE_MODEL, OURS, TWO_STAGE
from lodl_benchmarks.peers._summary import Score, complete_methods, regrets
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
    regret: float  # over the regret of squared error
    calls: float  # solver calls for each instance, looks included
    measured: float  # CPU seconds with the solvers of the tasks
    seconds: tuple[float, ...]  # CPU seconds at each price of a call: computed


def bills(by_task: Mapping[str, Mapping[str, Score]]) -> list[Bill]:
    """Return the bills of the methods that all linear tasks have on all seeds, but for 2-stage."""
    linear = {name: by_task[name] for name in LINEAR if name in by_task}
    methods = complete_methods(linear, with_variants=True)
    if TWO_STAGE not in methods or OURS not in methods:
        return []
    of_all = regrets(linear, methods)
    ratios = of_all / of_all[:, [methods.index(TWO_STAGE)]]
    return [
        _bill(method, linear, ratios[:, i].tolist())
        for i, method in enumerate(methods)
        if method not in ABLATIONS and method != TWO_STAGE
    ]


def _bill(method: str, linear: Mapping[str, Mapping[str, Score]], ratios: Sequence[float]) -> Bill:
    found = {name: of_task[method] for name, of_task in linear.items()}
    return Bill(
        method,
        geometric_mean(ratios),
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
