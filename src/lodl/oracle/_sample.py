"""Calls the oracle at candidate predictions around every label: the long work of the method."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lodl._threads import one_blas_thread
from lodl._typing import Array, Context
from lodl.errors import InvalidInputError, StoreError
from lodl.oracle._failure import listed
from lodl.oracle._instances import Instances, Series
from lodl.oracle._oracle_samples import OracleSamples
from lodl.oracle._part import pending
from lodl.oracle._run import OnFailure, Runner, RunSettings
from lodl.oracle._store import Store, open_store
from lodl.oracle._verify import verify
from lodl.oracle._workers import choose_workers
from lodl.problems import Problem
from lodl.problems._problem import check_instances, check_problem_type, sign_of
from lodl.samplers import Sampler
from lodl.samplers._sampler import check_sampler, spread_of

if TYPE_CHECKING:
    from concurrent.futures import Executor

_logger = logging.getLogger(__name__)


def sample(
    problem: Problem,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    keys: Sequence[int | str] | None = None,
    sampler: Sampler,
    n_samples: int,
    seed: int = 0,
    slopes: bool = False,
    n_jobs: int | None = None,
    executor: Executor | Any | None = None,
    store: str | os.PathLike[str] | Store | None = None,
    timeout: float | None = None,
    on_failure: OnFailure = "raise",
    max_failure_rate: float = 0.1,
    progress: bool = True,
) -> OracleSamples:
    """Return the regret of `n_samples` candidate predictions around every label.

        regret(y_hat, y) = DL(y_hat, y) - DL(y, y)

    With one seed the regrets are the same bits for any number of workers, on any executor, for a
    run in pieces and for one that grew, as far as the solver's are: BLAS kernels of another kind of
    CPU may differ in the last digits, and a vectorised problem may depend on the size of a batch.

    Args:
        problem: The problem. `n_instances * (n_samples + 1)` solver calls are made, fewer where
            instances are equal or a store knows their answers.
        y: Labels, shape (n_instances, *label_shape), or a frame with a column for each number.
        context: One entry per instance, or None. From a frame, each row becomes a dict.
        keys: Names of the instances, whole numbers or strings. If None, instances are identified
            by label and context, so that a part, a fold or another order of the data finds its
            answers.
        sampler: Draws the candidates.
        n_samples: Candidates per instance.
        seed: Random seed of the candidates.
        slopes: Whether to compute the slope of each decision too, which decision families need.
        n_jobs: Number of worker processes as in joblib, -1 for all cores. If None, use the active
            Dask client, or else this process.
        executor: A `concurrent.futures.Executor` or a Dask client that makes the calls instead.
        store: Where to keep the answers: a folder, an fsspec URL, or an open store. A run that was
            interrupted goes on where it stopped, and other instances, more samples and other
            samplers add to it. Up to 8 of its answers are computed again to see that they are
            this problem's, once if the store stays open. The scale "auto" is that of the labels
            the store was made with: fill it with all labels first, or give a scale. Several
            processes may share a store. If None, answers are kept in memory only.
        timeout: Seconds after which a call is given up and counts as failed.
        on_failure: "raise" stops at the first failed solver call; the next run tries it again.
            "skip" leaves out failed samples, also in later runs on the same store.
        max_failure_rate: With "skip", more than this share of failed samples is an error.
        progress: Whether to show a bar on a terminal.

    Raises:
        InvalidInputError: An argument is not what was expected.
        OracleError: A solver call failed, or too many did. What was done is kept in the store.
        ProblemError: Most candidates lead to better decisions than the labels: a wrong `sense`.
        StoreError: The store is damaged, or belongs to another problem.

    Example:
        >>> y = np.array([[3.0, 1.0], [0.0, 2.0]])
        >>> samples = lodl.oracle.sample(
        ...     lodl.domains.TopK(1), y, sampler=lodl.AllPerturbed(scale=2.0), n_samples=50
        ... )
        >>> samples.n_calls
        102
        >>> np.unique(samples[0].regret)  # right, or wrong by 2
        array([0., 2.])
    """
    settings = RunSettings(on_failure, max_failure_rate, timeout, progress)
    instances = Instances.of(*check_instances(problem, y, context), keys)
    there = open_or_make(store, spread_of(instances.y), problem)
    samples = _asked(problem, instances, there, sampler, n_samples, seed, slopes)
    workers = choose_workers(problem, n_jobs, executor, timeout)
    with one_blas_thread():  # here once for all tasks that run in this process
        verify(samples, workers, settings)
        parts = pending(samples, retry=settings.stops)
        samples.store.plan(sum(part.n_calls for part in parts))
        runner = Runner(samples, parts, workers, settings)
        runner.finish()
    if not settings.stops:
        runner.check_rate(samples.n_failures, samples.first_failures)
    samples.check_sense()
    _report(samples)
    return samples


def open_samples(
    store: str | os.PathLike[str],
    problem: Problem,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    keys: Sequence[int | str] | None = None,
    sampler: Sampler,
    n_samples: int,
    seed: int = 0,
    slopes: bool = False,
) -> OracleSamples:
    """Return samples from a store that `sample` has filled, without any solver call.

    The arguments are those of `sample`; a store holds neither the problem nor the labels.

    Raises:
        InvalidInputError: An argument is not what was expected.
        StoreError: The store is absent, damaged, or lacks some of the answers.

    Example:
        >>> y = np.array([[3.0, 1.0], [0.0, 2.0]])
        >>> asked = {"sampler": lodl.AllPerturbed(), "n_samples": 10}
        >>> samples = lodl.oracle.sample(lodl.domains.TopK(1), y, store="answers", **asked)
        >>> again = lodl.oracle.open_samples("answers", lodl.domains.TopK(1), y, **asked)
        >>> np.array_equal(samples[0].regret, again[0].regret)
        True
    """
    instances = Instances.of(*check_instances(problem, y, context), keys)
    there = open_or_make(open_store(store), spread_of(instances.y), problem)
    samples = _asked(problem, instances, there, sampler, n_samples, seed, slopes)
    n_missing = sum(part.n_calls for part in pending(samples, retry=False))
    if n_missing:
        n_calls = samples.n_instances * (n_samples + 1)
        raise StoreError(
            f"{store} lacks {n_missing} of {n_calls} answers. `lodl.oracle.sample` computes them."
        )
    return samples


def _asked(
    problem: Problem,
    instances: Instances,
    store: Store,
    sampler: Sampler,
    n_samples: int,
    seed: int,
    slopes: bool,
) -> OracleSamples:
    """Return the samples that are asked for; their store may lack some of the answers."""
    check_sampler(sampler)
    _check_scale(sampler, instances.y, store)
    series = Series.of(sampler, instances, spread=store.spread, n_samples=n_samples, seed=seed)
    series.candidates(problem, instances, 0, 0, 1)  # does the sampler or `project` fit the labels?
    return OracleSamples(instances, (series,), slopes, problem, store)


def open_or_make(
    store: str | os.PathLike[str] | Store | None, spread: Array, problem: Problem
) -> Store:
    """Return the store that a user names: an open one, one at a place, or one in memory."""
    check_problem_type(problem)
    sign_of(problem)
    if not isinstance(store, str | os.PathLike | Store | None):
        raise InvalidInputError(f"`store` must be a folder, a URL or None, got {store!r}.")
    if store is None:
        return Store(spread)
    if not isinstance(store, Store):
        store = open_store(store, spread=spread, problem=_identity(problem))
    store.check(spread, _identity(problem))
    return store


def _check_scale(sampler: Sampler, y: Array, store: Store) -> None:
    """Warn if the scale "auto", which is that of the store's first labels, does not fit others."""
    own, there = spread_of(y), store.spread
    is_better = there.size > 1 and np.ptp(there) > 0 and np.ptp(own) == 0  # from more labels
    ratio = there / own
    if isinstance(sampler.scale, str) and not is_better and (np.abs(np.log2(ratio)) > 1).any():
        _logger.warning(
            "%s was made with labels whose spread is %.3g to %.3g times that of these, and the "
            'scale "auto" stays that of the first labels. Give the sampler a scale, or fill '
            "another store with all labels first.",
            *(store.name, ratio.min(), ratio.max()),
        )


def _identity(problem: Problem) -> dict[str, str]:
    """Return the name and version that a user gave a problem, if any."""
    names = {"name": "name", "problem_version": "version"}
    given = {key: getattr(problem, name, None) for key, name in names.items()}
    return {key: value for key, value in given.items() if isinstance(value, str)}


def _report(samples: OracleSamples) -> None:
    """Tell the user, once, what is unusual about the samples."""
    counts, n_candidates = samples.counts, samples.n_instances * samples.n_samples
    if counts.negative:
        _logger.warning(
            "%d of %d candidates led to a better decision than the label itself, by %.3g on "
            "average (the mean regret is %.3g): the solver is a heuristic, or not exact enough. "
            "Their regrets are kept as they are, below zero.",
            *(counts.negative, n_candidates, counts.below_zero, counts.mean_size),
        )
    if counts.failures:
        _logger.warning(
            "%d of %d samples failed and are left out. The first of each kind: %s To try them "
            'again, use on_failure="raise" or another store.',
            *(counts.failures, n_candidates, listed(samples.first_failures.values())),
        )
