"""Chooses samplers, surrogates and learning rates: equal effort for all methods, no test data."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from lodl_benchmarks.pages import Row
from lodl_benchmarks.runner import METHODS, Experiment, Setup

_T = TypeVar("_T", bound=Hashable)

_SEEDS = (1000, 1001)  # domains that no table shows
_N_INITIALISATIONS = 3
_UNTRAINED = ("Random", "Optimal", "Constant")  # decision families take what suits the others


def tuning_experiments(setups: Mapping[str, Setup], n_samples: int) -> list[Experiment]:
    """Return every learning rate of each method, with every sampler or surrogate it uses."""
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
        for domain, setup in setups.items()
        for rate in setup.learning_rates  # outside: the second finds the losses learned
        for seed in _SEEDS
        for method in METHODS
        if method not in _UNTRAINED and not METHODS[method].needs_slopes
        for parts in _parts(setup, method)
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
    """Return, by domain, what has the best validation decision quality, as JSON values.

    One sampler for all learned losses, with which they do best on average, each with its
    best learning rate. One surrogate. Then for every method the learning rate that suits it best.
    """
    return {domain: _choose(group) for domain, group in _groups(rows, lambda r: r.domain).items()}


def _choose(rows: Sequence[Row]) -> dict[str, Any]:
    learned = [row for row in rows if METHODS[row.method].needs_samples]
    others = [row for row in rows if not METHODS[row.method].needs_samples]
    sampler = _best(_mean_of_best_rates(learned, "sampler"))
    surrogate = _best(_mean_of_best_rates([r for r in rows if r.method == "DFL"], "surrogate"))
    kept = [row for row in learned if row.setting("sampler") == sampler]
    kept += [r for r in others if r.method != "DFL" or r.setting("surrogate") == surrogate]
    rates = {
        method: _best(_by_rate(group))
        for method, group in _groups(kept, lambda r: r.method).items()
    }
    return {"sampler": sampler, "surrogate": surrogate, "learning_rates": rates}


def _mean_of_best_rates(rows: Sequence[Row], setting: str) -> dict[str, float]:
    """Return, for each value of a setting, the mean over methods of their best learning rate."""
    scores: dict[str, list[float]] = {}
    for (value, _), group in _groups(rows, lambda r: (r.setting(setting), r.method)).items():
        scores.setdefault(value, []).append(max(_by_rate(group).values()))
    return {value: float(np.mean(best)) for value, best in scores.items()}


def _by_rate(rows: Sequence[Row]) -> dict[float, float]:
    """Return the mean validation decision quality for each learning rate."""
    return {
        rate: float(np.mean(np.concatenate([row.validation for row in group])))
        for rate, group in _groups(rows, lambda r: float(r.setting("learning_rate"))).items()
    }


def _groups(rows: Sequence[Row], key: Callable[[Row], _T]) -> dict[_T, list[Row]]:
    groups: dict[_T, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _best(scores: Mapping[_T, float]) -> _T | None:
    return max(scores, key=scores.__getitem__, default=None)
