"""Sampler and learning rates: the same effort for every method, no look at test data."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lodl.experiments._methods import METHODS
from lodl.experiments._results import Row
from lodl.experiments._run import Experiment
from lodl.experiments._setup import Setup

_SEEDS = (1000, 1001)  # domains that no table shows
_N_INITIALISATIONS = 3
_UNTRAINED = ("Random", "Optimal", "Constant")


def tuning_experiments(
    setups: Mapping[str, Setup], domains: Iterable[str], n_samples: int
) -> list[Experiment]:
    """Returns every learning rate and, where losses are learned, every sampler of each method."""
    return [
        Experiment(domain, name, seed, _N_INITIALISATIONS, n_samples, rate, sampler)
        for domain in domains
        for seed in _SEEDS
        for name, method in METHODS.items()
        if name not in _UNTRAINED
        for rate in setups[domain].learning_rates
        for sampler in setups[domain].samplers[: None if method.needs_samples else 1]
    ]


def choose_sampler(rows: Sequence[Row]) -> dict[str, str]:
    """Returns, by domain, the sampler under which learned losses do best on validation data.

    A method counts with its best learning rate, and all learned losses count alike.
    """
    learned = [row for row in rows if METHODS[row["method"]].needs_samples]
    means = _mean_validation(learned, ("domain", "sampler", "method", "learning_rate"))
    best: dict[tuple[str, str], dict[str, float]] = {}
    for (domain, sampler, method, _), mean in means.items():
        methods = best.setdefault((domain, sampler), {})
        methods[method] = max(mean, methods.get(method, -np.inf))
    # The best comes last and stays.
    return dict(sorted(best, key=lambda key: float(np.mean(list(best[key].values())))))


def choose_rates(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Returns, by domain and method, the rate with the best mean validation decision quality."""
    means = _mean_validation(rows, ("domain", "method", "learning_rate"))
    chosen: dict[str, dict[str, float]] = {}
    for domain, method, rate in sorted(means, key=means.__getitem__):  # the best comes last
        chosen.setdefault(domain, {})[method] = rate
    return chosen


def _mean_validation(rows: Sequence[Row], names: tuple[str, ...]) -> dict[tuple[Any, ...], float]:
    """Returns the mean validation decision quality of the rows that share the named fields."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).extend(row["validation"])
    return {key: float(np.mean(values)) for key, values in groups.items()}
