"""Samplers, surrogates, learning rates: the same effort for every method, no test data."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lodl.benchmarks._methods import METHODS
from lodl.benchmarks._results import Row
from lodl.benchmarks._run import Experiment
from lodl.benchmarks._setup import Setup

_SEEDS = (1000, 1001)  # domains that no table shows
_N_INITIALISATIONS = 3
_UNTRAINED = ("Random", "Optimal", "Constant")


def tuning_experiments(
    setups: Mapping[str, Setup], domains: Iterable[str], n_samples: int
) -> list[Experiment]:
    """Returns every learning rate of each method, with every sampler or surrogate it uses."""
    return [
        Experiment(
            domain=domain,
            method=method,
            seed=seed,
            n_initialisations=_N_INITIALISATIONS,
            n_samples=n_samples,
            learning_rate=rate,
            **parts,
        )
        for domain in domains
        for rate in setups[domain].learning_rates  # outside: the second finds the losses learned
        for seed in _SEEDS
        for method in METHODS
        if method not in _UNTRAINED
        for parts in _parts(setups[domain], method)
    ]


def _parts(setup: Setup, method: str) -> Iterator[dict[str, Any]]:
    samplers = setup.samplers if METHODS[method].needs_samples else (setup.sampler,)
    surrogates = setup.surrogates if METHODS[method].needs_surrogate else (setup.surrogate,)
    return (
        {"sampler": sampler, "surrogate": surrogate}
        for sampler in samplers
        for surrogate in surrogates
    )


def choose(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Returns, by domain, what has the best validation decision quality.

    One sampler for all learned losses: that under which they do best on average, each with its best
    learning rate. One surrogate. Then for every method the learning rate that suits it best there.
    """
    return {
        domain: _choose([row for row in rows if row["domain"] == domain])
        for domain in dict.fromkeys(row["domain"] for row in rows)
    }


def _choose(rows: Sequence[Row]) -> dict[str, Any]:
    learned = [row for row in rows if METHODS[row["method"]].needs_samples]
    others = [row for row in rows if not METHODS[row["method"]].needs_samples]
    sampler = _best(_mean_of_best_rates(learned, "sampler"))
    surrogate = _best(_mean_of_best_rates([r for r in rows if r["method"] == "DFL"], "surrogate"))
    kept = [row for row in learned if row["sampler"] == sampler]
    kept += [row for row in others if row["method"] != "DFL" or row["surrogate"] == surrogate]
    rates = {
        method: _best(_means([row for row in kept if row["method"] == method], "learning_rate"))
        for method in dict.fromkeys(row["method"] for row in kept)
    }
    return {"sampler": sampler, "surrogate": surrogate, "learning_rates": rates}


def _mean_of_best_rates(rows: Sequence[Row], name: str) -> dict[Any, float]:
    """Returns, for each value of a field, the mean over methods of their best learning rate."""
    scores: dict[Any, list[float]] = {}
    for (value, _), group in _groups(rows, name, "method").items():
        scores.setdefault(value, []).append(max(_means(group, "learning_rate").values()))
    return {value: float(np.mean(best)) for value, best in scores.items()}


def _means(rows: Sequence[Row], name: str) -> dict[Any, float]:
    """Returns the mean validation decision quality for each value of a field."""
    return {
        value: float(np.mean(np.concatenate([row["validation"] for row in group])))
        for (value,), group in _groups(rows, name).items()
    }


def _groups(rows: Sequence[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def _best(scores: Mapping[Any, float]) -> Any:
    return max(scores, key=scores.__getitem__, default=None)
