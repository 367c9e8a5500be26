"""Calls the oracle at candidate predictions around every label: the long work of the method."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from lodl._typing import Context
from lodl.errors import StoreError
from lodl.oracle._oracle import Oracle
from lodl.oracle._part import pending
from lodl.oracle._run import OnFailure
from lodl.oracle._samples import Samples
from lodl.oracle._store import Store, open_store
from lodl.problems import Problem
from lodl.samplers import Sampler

if TYPE_CHECKING:
    from concurrent.futures import Executor


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
) -> Samples:
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
        store: File that keeps the answers; see `lodl.Oracle`.
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
    oracle = Oracle(
        problem,
        store=store,
        n_jobs=n_jobs,
        executor=executor,
        timeout=timeout,
        on_failure=on_failure,
        max_failure_rate=max_failure_rate,
        progress=progress,
    )
    how: Any = {"context": context, "keys": keys, "slopes": slopes, "random_state": seed}
    return oracle.sample(y, sampler, n_samples, **how)


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
) -> Samples:
    """Return samples from a store that `sample` has filled, without any solver call.

    The arguments are those of `sample`; a store holds neither the problem nor the labels.

    Raises:
        InvalidInputError: An argument is not what was expected.
        StoreError: The store is absent, damaged, or lacks some of the answers.

    Example:
        >>> y = np.array([[3.0, 1.0], [0.0, 2.0]])
        >>> asked = {"sampler": lodl.AllPerturbed(), "n_samples": 10}
        >>> samples = lodl.oracle.sample(lodl.domains.TopK(1), y, store="answers.db", **asked)
        >>> again = lodl.oracle.open_samples("answers.db", lodl.domains.TopK(1), y, **asked)
        >>> np.array_equal(samples[0].regret, again[0].regret)
        True
    """
    oracle = Oracle(problem, store=open_store(store))
    samples = oracle.unanswered(
        oracle.instances(y, context, keys), sampler, n_samples, slopes, random_state=seed
    )
    n_missing = sum(part.n_calls for part in pending(samples, retry=False))
    if n_missing:
        n_calls = samples.n_instances * (n_samples + 1)
        raise StoreError(
            f"{store} lacks {n_missing} of {n_calls} answers. `lodl.oracle.sample` computes them."
        )
    return samples
