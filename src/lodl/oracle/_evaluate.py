"""Calls the oracle at candidate predictions around every label: the long work of the method."""

import logging

import numpy.typing as npt

from lodl.oracle._fingerprint import fingerprint
from lodl.oracle._inputs import OracleInputs, check_inputs
from lodl.oracle._layout import measure_layout
from lodl.oracle._run import OnFailure, Run, RunSettings
from lodl.oracle._samples import OracleSamples
from lodl.oracle._table import Table, memory_table
from lodl.problems import Problem
from lodl.samplers import Sampler
from lodl.typing import Context
from lodl.validation import check_positive

_logger = logging.getLogger(__name__)


def evaluate(
    problem: Problem,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    sampler: Sampler,
    n_samples: int,
    seed: int = 0,
    n_jobs: int | None = None,
    store: str | None = None,
    on_failure: OnFailure = "raise",
    max_failure_rate: float = 0.1,
    progress: bool = True,
) -> OracleSamples:
    """Returns the regret of `n_samples` candidate predictions around every label.

        regret(y_hat, y) = DL(y_hat, y) - DL(y, y)

    With one seed the regrets are the same bits for any number of workers, any joblib backend, a run
    in pieces and a run that grew.

    Args:
        problem: The problem; `n_instances * (n_samples + 1)` oracle calls are made.
        y: Labels, shape (n_instances, *label_shape).
        context: One entry per instance, or None.
        sampler: Draws the candidates.
        n_samples: Candidates per instance.
        seed: Seed of the candidates.
        n_jobs: Parallel workers, as in joblib. For a Dask cluster leave it out and call within
            `joblib.parallel_config(backend="dask")`.
        store: Where to keep the outcomes: a directory or an fsspec URL. A run that was interrupted
            goes on where it stopped, one with more samples adds them. None keeps them in memory.
        on_failure: "raise" stops at the first failed oracle call; the next run tries it again.
            "skip" leaves out failed samples.
        max_failure_rate: With "skip", more than this share of failed samples is an error.
        progress: Whether to show a bar on a terminal.

    Raises:
        InvalidInputError: An argument is not what was expected.
        OracleError: An oracle call failed, or too many did. What was done is kept in the store.
        StoreError: The store is damaged, or belongs to other inputs.
    """
    inputs = check_inputs(problem, y, context=context, sampler=sampler, seed=seed)
    n_samples = check_positive("n_samples", n_samples)
    settings = RunSettings(on_failure, max_failure_rate, n_jobs, progress)
    fingerprints = fingerprints_of(inputs)
    table = memory_table(len(inputs.y), n_samples, measure_layout(inputs, n_samples))
    Run(inputs, table, n_samples, settings).finish()
    samples = samples_in(table, inputs, n_samples, fingerprints)
    _report(samples)
    return samples


def fingerprints_of(inputs: OracleInputs) -> dict[str, str]:
    """Returns digests of what the outcomes depend on, the seed and the number of samples aside."""
    return {
        "problem": fingerprint(inputs.problem),
        "labels": fingerprint(inputs.y),
        "context": fingerprint(inputs.context),
        "sampler": fingerprint(inputs.sampler),
    }


def samples_in(
    table: Table, inputs: OracleInputs, n_samples: int, fingerprints: dict[str, str]
) -> OracleSamples:
    """Returns the samples that a table holds."""
    return OracleSamples(
        n_samples=n_samples,
        fingerprints=fingerprints,
        seconds=table.log.seconds,
        first_failures=dict(table.log.first_failures),
        _inputs=inputs,
        _optimum=table.optimum.read(slice(0, len(inputs.y)), slice(0, 1)),
        _regret=table.regret,
    )


def _report(samples: OracleSamples) -> None:
    """Tells the user, once, what is unusual about the samples."""
    if samples.n_negative:
        _logger.warning(
            "%d of %d candidates led to a better decision than the label itself: the solver is a "
            "heuristic, or not exact enough. Their regrets are kept as they are, below zero.",
            samples.n_negative,
            samples.n_instances * samples.n_samples,
        )
    if samples.n_failures:
        _logger.warning(
            "%d of %d samples failed and are left out. The first of each kind: %s.",
            samples.n_failures,
            samples.n_instances * samples.n_samples,
            "; ".join(samples.first_failures.values()),
        )
