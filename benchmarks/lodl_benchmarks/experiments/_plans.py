"""Lists of experiments for each of the paper's tables, at several sizes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lodl.samplers import AllPerturbed, OnePerturbed, TwoPerturbed
from lodl_benchmarks.experiments._setups import SETUPS
from lodl_benchmarks.runner import METHODS, Experiment, Setup

_SAMPLERS = (OnePerturbed, TwoPerturbed, AllPerturbed)
_N_SAMPLES = (50, 500, 5000)
_N_SAMPLES_WITH_SLOPES = (20, 50)  # of decision families; the first is their default
_IN_LINEAR_FIGURE = ("2-stage", "DFL", "DirectedQuadratic", "ConvexDirectedQuadratic")


@dataclass(frozen=True)
class RunSize:
    """The size of a run: seeds, initialisations and samples."""

    n_seeds: int  # domain seeds
    n_initialisations: int  # models trained for each seed
    n_samples: int  # points per instance


SCALES: dict[str, RunSize] = {
    "quick": RunSize(n_seeds=2, n_initialisations=3, n_samples=1000),
    "paper": RunSize(n_seeds=10, n_initialisations=10, n_samples=5000),
}

TABLE3_SCALES: dict[str, RunSize] = {
    **SCALES,
    "quick": replace(SCALES["quick"], n_seeds=1, n_samples=500),
}
"""The scales of table 1, whose rows table 3 shares; quick is smaller, to stay quick."""


def table1_experiments(size: RunSize, setups: Mapping[str, Setup] = SETUPS) -> list[Experiment]:
    """Return every method in every domain."""
    return [
        Experiment(
            domain=domain,
            method=method,
            seed=seed,
            n_initialisations=size.n_initialisations,
            n_samples=n_samples,
            learning_rate=setup.training.learning_rate,
            sampler=setup.sampler,
            surrogate=setup.surrogate,
        )
        for domain, setup in setups.items()
        for seed in range(size.n_seeds)
        for method in METHODS
        for n_samples in _numbers_of_samples(method, size)
    ]


def table3_experiments(size: RunSize, setups: Mapping[str, Setup] = SETUPS) -> list[Experiment]:
    """Return the experiments of table 1 that learn a loss."""
    return [e for e in table1_experiments(size, setups) if METHODS[e.method].needs_samples]


def learned_experiments(size: RunSize, setups: Mapping[str, Setup] = SETUPS) -> list[Experiment]:
    """Return those that fit a loss, as the paper's do; decision families are not fitted."""
    return [e for e in table3_experiments(size, setups) if not METHODS[e.method].needs_slopes]


def table2a_experiments(size: RunSize, setups: Mapping[str, Setup] = SETUPS) -> list[Experiment]:
    """Return every learned loss with every sampler, all with the noise of the setup's sampler."""
    web = {"web": setups["web"]}
    return [
        replace(experiment, sampler=sampler(web["web"].sampler.scale))
        for sampler in _SAMPLERS
        for experiment in learned_experiments(size, web)
    ]


def table2b_experiments(size: RunSize, setups: Mapping[str, Setup] = SETUPS) -> list[Experiment]:
    """Return every learned loss with the paper's numbers of samples, as far as the size goes.

    Decision families have smaller numbers. Experiments of one seed share a store: fewer samples are
    the first of more.
    """
    web = {"web": setups["web"]}
    fewest = _N_SAMPLES_WITH_SLOPES[0]
    decisions = [
        e
        for e in table1_experiments(size, web)
        if METHODS[e.method].needs_slopes and e.n_samples == fewest
    ]
    plans = (
        (learned_experiments(size, web), _N_SAMPLES),
        (decisions, (*_N_SAMPLES_WITH_SLOPES, 500)),
    )
    return [
        replace(experiment, n_samples=n)
        for experiments, numbers in plans
        for n in sorted({min(n, size.n_samples) for n in numbers})
        for experiment in experiments
    ]


def linear_figure_experiments(
    size: RunSize, setups: Mapping[str, Setup] = SETUPS
) -> list[Experiment]:
    """Return the experiments of table 1 that the figure of the Linear Model shows."""
    plan = table1_experiments(size, {"linear": setups["linear"]})
    return [e for e in plan if e.method in _IN_LINEAR_FIGURE]


def _numbers_of_samples(method: str, size: RunSize) -> tuple[int, ...]:
    return _N_SAMPLES_WITH_SLOPES if METHODS[method].needs_slopes else (size.n_samples,)
