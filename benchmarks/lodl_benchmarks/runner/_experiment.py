"""Experiments of the paper: samples once per domain and seed, then every method."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lodl._digest import digest
from lodl._typing import Array
from lodl.domains import Domain, Split
from lodl.oracle import Oracle, Samples
from lodl.samplers import AllPerturbed, OnePerturbed, Sampler, TwoPerturbed
from lodl_benchmarks.pages import Row, parse_row
from lodl_benchmarks.quality import decision_quality, quality_scale
from lodl_benchmarks.runner._complete_rows import (
    Computation,
    RowValues,
    complete_rows,
    missing_rows,
    versions,
)
from lodl_benchmarks.runner._methods import METHODS, Method, MethodOutput, Run
from lodl_benchmarks.runner._task import Setup
from lodl_benchmarks.surrogates import Surrogate

_KNOWN_BY_SCALE = (OnePerturbed, TwoPerturbed, AllPerturbed)


@dataclass(frozen=True)
class Experiment:
    """One row to be: a method on a domain drawn from a seed."""

    domain: str  # the name of a setup
    method: str  # the name of a method
    seed: int  # random seed for the domain, its points and the random predictions
    n_initialisations: int  # models trained, each from another seed
    n_samples: int  # points per instance from which losses are learned
    learning_rate: float  # the learning rate of the training
    sampler: Sampler  # draws the points
    surrogate: Surrogate  # the relaxation of decision-focused learning

    @property
    def sampler_name(self) -> str:
        """The sampler in a row: its kind and scale, or a digest where that is not all of it."""
        name = type(self.sampler).__name__
        if type(self.sampler) in _KNOWN_BY_SCALE and np.ndim(self.sampler.scale) == 0:
            return f"{name}({self.sampler.scale})"
        return f"{name}-{digest(self.sampler)[:16]}"

    @property
    def surrogate_name(self) -> str:
        """The surrogate in a row: its settings if it prints them, else a digest."""
        kind = type(self.surrogate)
        if kind.__repr__ is not object.__repr__:
            return repr(self.surrogate)
        return f"{kind.__name__}-{digest(self.surrogate)[:16]}"


def run(
    experiments: Sequence[Experiment],
    out: Path,
    *,
    setups: Mapping[str, Setup],
    methods: Mapping[str, Method] = METHODS,
    n_jobs: int | None = None,
    progress: bool = True,
) -> list[Row]:
    """Run the experiments that have no row yet and return the rows of all, in order.

    Rows that the folder `out` holds are not computed again. Several runners may share it. Add
    methods, such as `Learned(family)`, to `methods`.
    """
    computations = [
        Computation(
            _identity(e, setups[e.domain], methods[e.method]),
            partial(_measure, e, setups[e.domain], methods[e.method], out),
        )
        for e in experiments
    ]
    pending = [experiments[i] for i in missing_rows(computations, out)]
    for slopes in (False, True):
        wanted = [
            e
            for e in pending
            if methods[e.method].needs_samples and methods[e.method].needs_slopes == slopes
        ]
        for e in _most_demanding(wanted):
            sample(e, setups[e.domain], out, slopes=slopes, n_jobs=n_jobs, progress=progress)
    rows = complete_rows(
        computations, out, description="experiments", n_jobs=n_jobs, progress=progress
    )
    return [parse_row(values) for values in rows]


def sample(
    experiment: Experiment,
    setup: Setup,
    out: Path,
    *,
    slopes: bool = False,
    n_jobs: int | None = None,
    progress: bool = True,
) -> Samples:
    """Sample around the labels of training and validation, or take what the store has."""
    domain = setup.build(experiment.seed)
    part = domain.splits.train_and_validation
    store = out / "samples" / _source(experiment)
    oracle = Oracle(domain.problem, n_jobs=n_jobs, store=store, progress=progress)
    return oracle.sample(
        oracle.instances(part.y, part.context, keys=range(len(part.y))),
        experiment.sampler,
        experiment.n_samples,
        random_state=experiment.seed,
        slopes=slopes,
    )


def _source(experiment: Experiment) -> str:
    """Return the name of an experiment's samples."""
    return f"{experiment.domain}-{experiment.seed}-{experiment.sampler_name}"


def loss_path(
    out: Path, experiment: Experiment, setup: Setup, method: Method | None = None
) -> Path:
    """Return the path of a learned loss, which names everything it was learned from."""
    learned_from = [
        setup.data(experiment.seed),
        recorded_settings(method or METHODS[experiment.method]),
        versions()["lodl"],
    ]
    name = f"{_source(experiment)}-{experiment.n_samples}-{experiment.method}"
    return out / "losses" / f"{name}-{digest(learned_from)[:16]}.safetensors"


def _most_demanding(experiments: Sequence[Experiment]) -> list[Experiment]:
    """Return the experiment with the most samples from each group that shares samples."""
    by_size = sorted(experiments, key=lambda e: e.n_samples)
    return list({_source(e): e for e in by_size}.values())


def _measure(experiment: Experiment, setup: Setup, method: Method, out: Path) -> RowValues:
    """Run one experiment and return what came out of it."""
    started = time.perf_counter()
    domain = setup.build(experiment.seed)
    samples = None
    if method.needs_samples:
        samples = sample(experiment, setup, out, slopes=method.needs_slopes, progress=False)
    training = replace(setup.training, learning_rate=experiment.learning_rate)
    output = method.run(
        Run(
            domain=domain,
            surrogate=experiment.surrogate,
            settings=training,
            n_initialisations=experiment.n_initialisations,
            samples=samples,
            loss_path=loss_path(out, experiment, setup, method),
        )
    )
    validation, test = domain.splits.validation, domain.splits.test
    return {
        "validation": _normalised(domain, validation, output.y_hat_validation, experiment.seed),
        "test": _normalised(domain, test, output.y_hat_test, experiment.seed),
        **_facts(output, samples),
        "seconds": time.perf_counter() - started,
    }


def _normalised(domain: Domain, part: Split, y_hat: Array, seed: int) -> list[float]:
    """Return the normalised decision quality of each initialisation."""
    scale = quality_scale(domain.problem, part.y, context=part.context, random_state=seed)
    quality = decision_quality(domain.problem, y_hat, part.y, context=part.context)
    values: list[float] = scale.normalise(quality).tolist()
    return values


def _facts(output: MethodOutput, samples: Samples | None) -> dict[str, Any]:
    return {
        "oracle_calls": output.oracle_calls,
        "seconds_sampling": 0.0 if samples is None else samples.seconds,
        "seconds_fitting": output.seconds_fitting,
        "seconds_training": output.seconds_training,
        "best_steps": list(output.steps),
        "gaussian_error": output.gaussian_error,
        "empirical_error": list(output.empirical_error),
    }


def _identity(experiment: Experiment, setup: Setup, method: Method) -> dict[str, Any]:
    """Return what distinguishes an experiment from others, as JSON values."""
    given = {field.name: getattr(experiment, field.name) for field in fields(experiment)}
    names = {"sampler": experiment.sampler_name, "surrogate": experiment.surrogate_name}
    settings = {"data": setup.data(experiment.seed), "settings": recorded_settings(method)}
    training = asdict(setup.training) | {"learning_rate": experiment.learning_rate}
    identity = {**given, **names, **settings, "training": training}
    if not method.needs_surrogate:
        del identity["surrogate"]
    return identity


def recorded_settings(method: Method) -> str:
    """Return the settings of a method as rows record them.

    A `ridge` of 0 is left out: the paper's rows are older than the parameter.
    """
    return repr(method).replace(", ridge=0.0", "")
