"""Runs experiments: samples once per domain and seed, then every method, then rows."""

import json
import time
import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from lodl._progress import progress_bar
from lodl._threads import one_torch_thread
from lodl._typing import Array
from lodl.benchmarks._memory import keep_freed_memory
from lodl.benchmarks._methods import METHODS, Method, Outcome, Task
from lodl.benchmarks._results import ResultsFile, Row
from lodl.benchmarks._setup import SETUPS, Setup
from lodl.benchmarks._versions import versions
from lodl.benchmarks.surrogates import Surrogate
from lodl.domains import Domain, Instances
from lodl.evaluation import decision_quality, quality_scale
from lodl.oracle import OracleSamples, evaluate, fingerprint
from lodl.paper import SAMPLERS
from lodl.samplers import Sampler


@dataclass(frozen=True)
class Experiment:
    """One row to be: a method on a domain drawn from a seed.

    Attributes:
        domain: The name of a setup.
        method: The name of a method.
        seed: Of the domain, of its candidates, and of the random predictions.
        n_initialisations: Models trained, each from a seed of its own.
        n_samples: Candidates per instance from which losses are learned.
        learning_rate: Of the training.
        sampler: Draws the candidates.
        surrogate: The relaxation of decision-focused learning.
    """

    domain: str
    method: str
    seed: int
    n_initialisations: int
    n_samples: int
    learning_rate: float
    sampler: Sampler
    surrogate: Surrogate

    @property
    def sampler_name(self) -> str:
        """The sampler as a row has it: where kind and scale do not say all, a digest does."""
        name = type(self.sampler).__name__
        if name in SAMPLERS and np.ndim(self.sampler.scale) == 0:
            return f"{name}({self.sampler.scale})"
        return f"{name}-{fingerprint(self.sampler)[:16]}"

    @property
    def surrogate_name(self) -> str:
        """The surrogate as a row has it: its settings if it prints them, else a digest."""
        kind = type(self.surrogate)
        if kind.__repr__ is not object.__repr__:
            return repr(self.surrogate)
        return f"{kind.__name__}-{fingerprint(self.surrogate)[:16]}"


def run(
    experiments: Sequence[Experiment],
    out: Path,
    *,
    setups: Mapping[str, Setup] = SETUPS,
    methods: Mapping[str, Method] = METHODS,
    n_jobs: int | None = None,
    progress: bool = True,
) -> list[Row]:
    """Runs the experiments that have no row yet and returns the rows of all, in order.

    Args:
        experiments: What to run.
        out: Folder of `rows.jsonl` and of the samples; what is there is not computed again.
        setups: The domains by name.
        methods: The methods by name; add your own, such as `Learned(family)`. The fit of a family
            of your own is registered in the module that defines it: workers import that.
        n_jobs: Workers, as in joblib.
        progress: Whether to show bars on a terminal.
    """
    results = ResultsFile(out / "rows.jsonl")
    identities = [_identity(e, setups[e.domain], methods[e.method]) for e in experiments]
    names = set[str]().union(*identities)
    keys = [_key({**identity, "versions": versions()}, names) for identity in identities]
    done = {_key(row, names) for row in results.rows()}
    pending = [e for e, key in zip(experiments, keys, strict=True) if key not in done]
    for e in _most_demanding([e for e in pending if methods[e.method].needs_samples]):
        sample(e, setups[e.domain], out, n_jobs=n_jobs, progress=progress)
    with (
        progress_bar(len(pending), unit="runs", description="experiments", enabled=progress) as bar,
        warnings.catch_warnings(),
    ):
        # loky takes the memory of torch for a leak, and starts a fresh worker: nothing is lost.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        workers = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
        calls = (delayed(_run_one)(e, setups[e.domain], methods[e.method], out) for e in pending)
        for row in workers(calls):
            results.append(row)
            bar.update()
    rows = {_key(row, names): row for row in results.rows()}
    return [rows[key] for key in keys]


def sample(
    experiment: Experiment,
    setup: Setup,
    out: Path,
    *,
    n_jobs: int | None = None,
    progress: bool = True,
) -> OracleSamples:
    """Samples around the labels of training and validation, or takes what the store has."""
    domain = setup.build(experiment.seed)
    part = domain.splits.train_and_validation
    return evaluate(
        domain.problem,
        part.y,
        context=part.context,
        sampler=experiment.sampler,
        n_samples=experiment.n_samples,
        seed=experiment.seed,
        n_jobs=n_jobs,
        store=out / "samples" / f"{_source(experiment)}.zarr",
        progress=progress,
    )


def _source(experiment: Experiment) -> str:
    """Names the samples of an experiment."""
    return f"{experiment.domain}-{experiment.seed}-{experiment.sampler_name}"


def loss_path(
    out: Path, experiment: Experiment, setup: Setup, method: Method | None = None
) -> Path:
    """Returns where a learned loss is kept: a place of its own for all that went into it.

    The method is that of the experiment's name unless given.
    """
    learned_from = [
        _fingerprint(setup, experiment.seed),
        repr(method or METHODS[experiment.method]),
        versions()["lodl"],
    ]
    name = f"{_source(experiment)}-{experiment.n_samples}-{experiment.method}"
    return out / "losses" / f"{name}-{fingerprint(learned_from)[:16]}.safetensors"


def _most_demanding(experiments: Sequence[Experiment]) -> list[Experiment]:
    """Returns, of the experiments that share samples, the one that needs the most."""
    by_size = sorted(experiments, key=lambda e: e.n_samples)
    return list({_source(e): e for e in by_size}.values())


@one_torch_thread()
def _run_one(experiment: Experiment, setup: Setup, method: Method, out: Path) -> Row:
    """Runs one experiment in a worker, on one thread."""
    keep_freed_memory()
    started = time.perf_counter()
    domain = setup.build(experiment.seed)
    samples = None
    if method.needs_samples:
        samples = sample(experiment, setup, out, progress=False)
    training = replace(setup.training, learning_rate=experiment.learning_rate)
    outcome = method.run(
        Task(
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
        **_identity(experiment, setup, method),
        "validation": _normalised(domain, validation, outcome.y_hat_validation, experiment.seed),
        "test": _normalised(domain, test, outcome.y_hat_test, experiment.seed),
        **_facts(outcome, samples),
        "seconds": time.perf_counter() - started,
        "versions": versions(),
    }


def _normalised(domain: Domain, part: Instances, y_hat: Array, seed: int) -> list[float]:
    """Returns the normalised decision quality of each initialisation."""
    scale = quality_scale(domain.problem, part.y, context=part.context, seed=seed, progress=False)
    quality = decision_quality(domain.problem, y_hat, part.y, context=part.context, progress=False)
    values: list[float] = scale.normalise(quality).tolist()
    return values


def _facts(outcome: Outcome, samples: OracleSamples | None) -> dict[str, Any]:
    return {
        "oracle_calls": outcome.oracle_calls,
        "seconds_sampling": 0.0 if samples is None else samples.seconds,
        "seconds_fitting": outcome.seconds_fitting,
        "seconds_training": outcome.seconds_training,
        "best_steps": list(outcome.steps),
        "gaussian_error": outcome.gaussian_error,
        "empirical_error": list(outcome.empirical_error),
    }


def _identity(experiment: Experiment, setup: Setup, method: Method) -> dict[str, Any]:
    """Returns what makes a row this experiment's, as JSON values."""
    given = {field.name: getattr(experiment, field.name) for field in fields(experiment)}
    training = asdict(setup.training) | {"learning_rate": experiment.learning_rate}
    surrogate = experiment.surrogate_name if method.needs_surrogate else None
    names = {"sampler": experiment.sampler_name, "surrogate": surrogate}
    settings = {"data": _fingerprint(setup, experiment.seed), "settings": repr(method)}
    return {**given, **names, **settings, "training": training}


@cache
def _fingerprint(setup: Setup, seed: int) -> str:
    """Returns a digest of all that a domain is: other parameters or prices make other rows."""
    domain = setup.build(seed)
    splits = domain.splits
    parts = [
        [part.x, part.y, part.context] for part in (splits.train, splits.validation, splits.test)
    ]
    return fingerprint([domain.problem, repr(domain.model), parts])[:16]


def _key(row: Row, names: Set[str]) -> str:
    """Names an experiment and the version that ran it: code that may differ makes another row."""
    identity = {name: row.get(name) for name in names}
    method = METHODS.get(row.get("method", ""))
    if method is not None and not method.needs_surrogate:
        identity["surrogate"] = None  # some rows name one, though it has no part in them
    return json.dumps([identity, row.get("versions", {}).get("lodl")], sort_keys=True)
