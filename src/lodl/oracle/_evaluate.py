"""Calls the oracle at candidate predictions around every label: the long work of the method."""

import logging
from collections.abc import Callable
from os import PathLike

import numpy.typing as npt

from lodl._threads import one_blas_thread
from lodl._typing import Context
from lodl._validation import check_count
from lodl.errors import InvalidInputError, StoreError
from lodl.oracle._fingerprint import fingerprint
from lodl.oracle._inputs import OracleInputs, check_inputs
from lodl.oracle._layout import measure_layout
from lodl.oracle._run import OnFailure, Run, RunSettings
from lodl.oracle._samples import OracleSamples
from lodl.oracle._store import create_store, open_store
from lodl.oracle._store_header import StoreIdentity
from lodl.oracle._table import Table, memory_table
from lodl.problems import Problem
from lodl.samplers import Sampler

_N_PINNED = 5  # candidates by which a store knows that the same ones are drawn again
_MAX_ROUNDS = 3  # another process that asks for fewer samples may undo some of ours

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
    store: str | PathLike[str] | None = None,
    on_failure: OnFailure = "raise",
    max_failure_rate: float = 0.1,
    progress: bool = True,
) -> OracleSamples:
    """Returns the regret of `n_samples` candidate predictions around every label.

        regret(y_hat, y) = DL(y_hat, y) - DL(y, y)

    With one seed the regrets are the same bits for any number of workers, any joblib backend, a run
    in pieces and a run that grew.

    Args:
        problem: The problem. `n_instances * (n_samples + 1)` oracle calls are made, and before a
            new run a few more to learn what one costs. A vectorised problem answers whole batches:
            for it `n_samples` counts as the next of 50, 100, 250, 500, 1000, 1500 and so on.
        y: Labels, shape (n_instances, *label_shape).
        context: One entry per instance, or None.
        sampler: Draws the candidates.
        n_samples: Candidates per instance.
        seed: Seed of the candidates.
        n_jobs: Parallel workers, as in joblib. For a Dask cluster leave it out and call within
            `joblib.parallel_config(backend="dask")`.
        store: Where to keep the outcomes: a directory or an fsspec URL. A run that was interrupted
            goes on where it stopped, one with more samples adds them. Other inputs are refused,
            as far as `fingerprint` can tell: it does not look into modules that your functions
            import. Several processes may share a local store: they may do some work twice, but no
            harm. None keeps all in memory.
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
    n_samples = check_count("n_samples", n_samples)
    settings = RunSettings(on_failure, max_failure_rate, n_jobs, progress)
    if not isinstance(store, str | PathLike | None):
        raise InvalidInputError(f"`store` must be a directory, a URL or None, got {store!r}.")
    with one_blas_thread():  # here once for all tasks that run in this process
        samples = _evaluate(inputs, n_samples, store, settings)
    _report(samples)
    return samples


def open_samples(
    store: str | PathLike[str],
    problem: Problem,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    sampler: Sampler,
    n_samples: int | None = None,
    seed: int = 0,
) -> OracleSamples:
    """Returns samples from a store that `evaluate` has filled, without any oracle call.

    Args:
        store: The directory or URL.
        problem: The problem, as given to `evaluate`: a store holds neither it nor the labels.
        y: Labels.
        context: One entry per instance, or None.
        sampler: The sampler.
        n_samples: The first samples of each instance; None takes all there are.
        seed: The seed.

    Raises:
        InvalidInputError: An argument is not what was expected.
        StoreError: The store is absent, incomplete, damaged, or belongs to other inputs.
    """
    inputs = check_inputs(problem, y, context=context, sampler=sampler, seed=seed)
    identity = _identity_of(inputs)
    table = open_store(str(store), identity, n_samples=None)
    if table is None:
        raise StoreError(f"There is no store at {store}. `evaluate` makes it.")
    n_stored = table.regret.shape[1]
    if n_samples is not None and check_count("n_samples", n_samples) > n_stored:
        raise StoreError(f"{store} holds {n_stored} samples per instance, {n_samples} were asked.")
    samples = _samples_in(table, inputs, n_samples or n_stored, identity)
    if not samples.is_complete:
        raise StoreError(f"{store} is not complete. Call `evaluate` to compute what is missing.")
    return samples


def _evaluate(
    inputs: OracleInputs,
    n_samples: int,
    store: str | PathLike[str] | None,
    settings: RunSettings,
) -> OracleSamples:
    table, identity = _open_table(inputs, n_samples, store)
    for _ in range(_MAX_ROUNDS):
        Run(inputs, table, n_samples, settings).finish()
        samples = _samples_in(table, inputs, n_samples, identity)
        if samples.is_complete:
            return samples
    raise StoreError(f"{store} was changed by others while it was filled. Call `evaluate` again.")


def _open_table(
    inputs: OracleInputs, n_samples: int, store: str | PathLike[str] | None
) -> tuple[Table, StoreIdentity]:
    if store is None:
        layout = measure_layout(inputs, n_samples)
        identity = _identity_of(inputs, fingerprint=_fingerprint_if_any)
        return memory_table(len(inputs.y), n_samples, layout), identity
    place, identity = str(store), _identity_of(inputs)
    table = open_store(place, identity, n_samples)
    if table is None:
        create_store(place, identity, measure_layout(inputs, n_samples), n_samples)
        table = open_store(place, identity, n_samples)
    if table is None:
        raise StoreError(f"{place} vanished while it was opened.")
    return table, identity


def _identity_of(
    inputs: OracleInputs, fingerprint: Callable[[object], str] = fingerprint
) -> StoreIdentity:
    fingerprints = {
        "problem": fingerprint(inputs.problem),
        "labels": fingerprint(inputs.y),
        "context": fingerprint(inputs.context),
        "sampler": fingerprint(inputs.sampler),
    }
    first = inputs.sampler.draw(
        inputs.centres[0], inputs.scale, seed=inputs.seed, instance=0, block=0
    )
    pinned = first[:_N_PINNED].reshape(_N_PINNED, -1).sum(axis=1)
    return StoreIdentity(len(inputs.y), inputs.seed, fingerprints, tuple(pinned.tolist()))


def _fingerprint_if_any(thing: object) -> str:
    """Returns "unknown" for what has no fingerprint: in memory nothing depends on it."""
    try:
        return fingerprint(thing)
    except InvalidInputError:
        return "unknown"


def _samples_in(
    table: Table, inputs: OracleInputs, n_samples: int, identity: StoreIdentity
) -> OracleSamples:
    return OracleSamples(
        n_samples=n_samples,
        fingerprints=identity.fingerprints,
        seconds=table.log.seconds * n_samples / table.regret.shape[1],
        first_failures=dict(table.log.first_failures),
        _inputs=inputs,
        _optimum=table.optimum.read(slice(0, len(inputs.y)), slice(0, 1)),
        _regret=table.regret,
    )


def _report(samples: OracleSamples) -> None:
    """Tells the user, once, what is unusual about the samples."""
    n_candidates = samples.n_instances * samples.n_samples
    if samples.n_negative:
        _logger.warning(
            "%d of %d candidates led to a better decision than the label itself: %s. Their regrets "
            "are kept as they are, below zero.",
            samples.n_negative,
            n_candidates,
            "`sense` is probably wrong, or `objective` does not score what `solve` optimises"
            if 2 * samples.n_negative > n_candidates
            else "the solver is a heuristic, or not exact enough",
        )
    if samples.n_failures:
        _logger.warning(
            "%d of %d samples failed and are left out. The first of each kind: %s.",
            samples.n_failures,
            n_candidates,
            "; ".join(samples.first_failures.values()),
        )
