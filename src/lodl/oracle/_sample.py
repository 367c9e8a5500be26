"""Calls the oracle at candidate predictions around every label: the long work of the method."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lodl._threads import one_blas_thread
from lodl._typing import Array, Context
from lodl.errors import InvalidInputError, StoreError
from lodl.oracle._ask import Row
from lodl.oracle._failure import OK, listed
from lodl.oracle._instances import Instances, Series
from lodl.oracle._oracle_samples import OracleSamples
from lodl.oracle._run import Calls, OnFailure, Runner, RunSettings
from lodl.oracle._store import Store, open_store
from lodl.oracle._workers import Workers, choose_workers
from lodl.problems import Problem
from lodl.problems._problem import check_problem_type, sign_of
from lodl.samplers import Sampler
from lodl.samplers._sampler import check_sampler, spread_of

if TYPE_CHECKING:
    from concurrent.futures import Executor

_N_VERIFIED = 4  # instances of a store that are verified, at the label and at one candidate
_N_PROBED = 64  # instances looked at to find them
_SAME, _OTHER = 1e-6, 1e-3  # of the largest regret: as near as solvers repeat an answer, and not
_TINY = 1e-12  # a difference of losses that means nothing

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
    executor: "Executor | Any | None" = None,
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
        problem: The problem. `n_instances * (n_samples + 1)` oracle calls are made, fewer where
            instances are equal or a store knows their answers.
        y: Labels, shape (n_instances, *label_shape).
        context: One entry per instance, or None.
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
        on_failure: "raise" stops at the first failed oracle call; the next run tries it again.
            "skip" leaves out failed samples, also in later runs on the same store.
        max_failure_rate: With "skip", more than this share of failed samples is an error.
        progress: Whether to show a bar on a terminal.

    Raises:
        InvalidInputError: An argument is not what was expected.
        OracleError: An oracle call failed, or too many did. What was done is kept in the store.
        ProblemError: Most candidates lead to better decisions than the labels: a wrong `sense`.
        StoreError: The store is damaged, or belongs to another problem.
    """
    settings = RunSettings(on_failure, max_failure_rate, timeout, progress)
    asked = _Asked.of(problem, y, context, keys, sampler, n_samples, seed, slopes, store)
    workers = choose_workers(problem, n_jobs, executor, timeout)
    with one_blas_thread():  # here once for all tasks that run in this process
        asked.verify(workers, settings)
        asked.fill(workers, settings)
    asked.samples.check_sense()
    _report(asked.samples)
    return asked.samples


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
    """Return samples from a store that `sample` has filled, without any oracle call.

    Args:
        store: The folder or URL.
        problem: The problem, as given to `sample`: a store holds neither it nor the labels.
        y: Labels.
        context: One entry per instance, or None.
        keys: Names of the instances, as given to `sample`.
        sampler: The sampler.
        n_samples: Candidates per instance.
        seed: The random seed.
        slopes: Whether the answers must have slopes.

    Raises:
        InvalidInputError: An argument is not what was expected.
        StoreError: The store is absent, damaged, or lacks some of the answers.
    """
    there = open_store(store, spread=None, problem=_identity(problem))
    asked = _Asked.of(problem, y, context, keys, sampler, n_samples, seed, slopes, there)
    n_missing = sum(len(row.columns) for row in asked.pending(retry=False))
    if n_missing:
        n_calls = len(asked.calls.instances) * (n_samples + 1)
        raise StoreError(
            f"{store} lacks {n_missing} of {n_calls} answers. `lodl.oracle.sample` computes them."
        )
    return asked.samples


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is asked, and where the answers are kept."""

    problem: Problem
    calls: Calls
    store: Store

    @classmethod
    def of(
        cls,
        problem: Problem,
        y: npt.ArrayLike,
        context: Context,
        keys: Sequence[int | str] | None,
        sampler: Sampler,
        n_samples: int,
        seed: int,
        slopes: bool,
        store: "str | os.PathLike[str] | Store | None",
    ) -> "_Asked":
        check_problem_type(problem)
        sign_of(problem)
        check_sampler(sampler)
        instances = Instances.of(y, context, keys)
        there = open_or_make(store, spread_of(instances.y), problem)
        _check_scale(sampler, instances.y, there)
        series = Series.of(sampler, instances, spread=there.spread, n_samples=n_samples, seed=seed)
        centre = None if series.centres is None else series.centres[0]
        # A sampler or a projection that does not fit the labels shows here.
        series.candidates(problem, instances.y[0], instances.keys[0], centre, 0, 1)
        spread = there.spread if slopes else None
        return cls(problem, Calls(instances, series, series.ids(instances), spread), there)

    @cached_property
    def samples(self) -> OracleSamples:
        """What `sample` returns."""
        calls = self.calls
        has_slopes = calls.spread is not None
        return OracleSamples(calls.instances, (calls.series,), has_slopes, self.problem, self.store)

    def pending(self, *, retry: bool) -> list[Row]:
        """Return the calls to make, those of equal instances once."""
        calls, seen, rows = self.calls, set(), []
        slopes, n_samples = calls.spread is not None, calls.series.n_samples
        everything = np.arange(n_samples + 1, dtype=np.int32)
        for number, ids in enumerate(zip(calls.instances.ids, calls.series_ids, strict=True)):
            if ids in seen:
                continue
            seen.add(ids)
            if ids[0] not in self.store and ids[1] not in self.store:
                rows.append(calls.row(number, everything))
                continue
            label = self.store.known(ids[0], 1, slopes=slopes)
            rest = self.store.known(ids[1], n_samples, slopes=slopes)
            wanted = np.append(label.is_pending(retry=retry), rest.is_pending(retry=retry))
            if label.status[0] > OK and not retry:
                continue  # without its optimum an instance has no regrets
            if wanted.any():
                rows.append(calls.row(number, np.flatnonzero(wanted)))
        return rows

    def fill(self, workers: Workers, settings: RunSettings) -> None:
        """Make the calls that are pending."""
        rows = self.pending(retry=settings.stops)
        self.store.plan(sum(len(row.columns) for row in rows))
        runner = Runner(self.calls, rows, self.store, workers, settings)
        runner.finish()
        if not settings.stops:
            runner.check_rate(self.samples.n_failures)

    def verify(self, workers: Workers, settings: RunSettings) -> None:
        """Compute a few stored answers again: they must be this problem's."""
        if self.store.n_answers == 0:
            self.store.verified_with = self.problem
        rows = [] if self.store.verified_with is self.problem else self._stored()
        if not rows:
            return
        before, scratch = self._losses(rows, self.store), self._recompute(rows, workers, settings)
        now = self._losses(rows, scratch)
        off = _differences(before, now)
        worst = int(off.argmax())
        if off[worst] > _OTHER:
            again = self._losses(rows, self._recompute(rows, workers, settings))
            column = int(rows[worst].columns[-1])
            raise _wrong_store(
                f"{np.sum(off > _OTHER)} of {len(rows)} stored answers come out different when "
                f"computed again (instance {rows[worst].number}, "
                f"{f'sample {column - 1}' if column else 'the label itself'}: "
                f"{before[worst, -1]:.12g} stored, {now[worst, -1]:.12g} now)",
                is_random=_differences(now, again).max() > _OTHER,
            )
        if not np.isfinite(now).any():
            n_checks = sum(len(row.columns) for row in rows)
            _logger.warning(
                "%d of %d spot checks failed: %s The stored answers could not be verified.",
                n_checks,
                n_checks,
                listed(scratch.notes.failures.values()),
            )
            return
        if off[worst] > _SAME:
            _logger.warning(
                "Stored answers come out slightly different when computed again, by up to %.1g of "
                "the largest regret among them: the solver is not exact, or not deterministic.",
                off[worst],
            )
        self.store.verified_with = self.problem

    def _stored(self) -> list[Row]:
        """Return a label and a costly candidate of a few instances whose answers are stored."""
        calls, rows = self.calls, list[Row]()
        there = [number for number, id_ in enumerate(calls.instances.ids) if id_ in self.store]
        probes = np.linspace(0, len(there) - 1, min(_N_PROBED, len(there))).astype(int)
        stride = -(-len(probes) // _N_VERIFIED)
        for place in (place for first in range(stride) for place in probes[first::stride]):
            number = there[place]
            label = self.store.known(calls.instances.ids[number], 1)
            if label.status[0] != OK:
                continue
            known = self.store.known(calls.series_ids[number], calls.series.n_samples)
            size = np.where(known.status == OK, np.abs(known.loss - label.loss[0]), -1.0)
            columns = [0, int(size.argmax()) + 1] if size.max() >= 0 else [0]
            rows.append(calls.row(number, columns))
            if len(rows) == _N_VERIFIED:
                break
        return rows

    def _losses(self, rows: list[Row], store: Store) -> Array:
        """Return the losses at label and candidate, shape (rows, 2)."""
        calls = self.calls
        losses = []
        for row in rows:
            label = store.known(calls.instances.ids[row.number], 1).loss[0]
            column = int(row.columns[-1])
            known = store.known(calls.series_ids[row.number], max(column, 1))
            losses.append([label, known.loss[column - 1] if column else label])
        return np.array(losses)

    def _recompute(self, rows: list[Row], workers: Workers, settings: RunSettings) -> Store:
        """Return a store with what the problem now answers."""
        scratch = Store(self.store.spread)
        scratch.note = self.store.note
        quiet = replace(settings, on_failure="skip", max_failure_rate=1.0, progress=False)
        Runner(replace(self.calls, spread=None), rows, scratch, workers, quiet).finish()
        return scratch


def _differences(before: Array, now: Array) -> Array:
    """Return how far the losses of each row differ; 0 where a call failed, which says nothing.

    The unit is the largest difference of two stored losses of an instance, or a hundredth of the
    loss itself: a solver may be off by so much more where only a large objective is known.
    """
    unit = np.abs(before[:, 1] - before[:, 0]).max() + np.abs(before) / 100
    off = np.where(np.isfinite(now), np.abs(before - now), 0.0)
    return np.asarray(np.where(off > _TINY, off / np.maximum(unit, _TINY), 0.0).max(axis=1))


def _wrong_store(where: str, *, is_random: bool) -> StoreError:
    if is_random:
        return StoreError(
            f"The solver is not deterministic: {where}, and different again the next time. Fix its "
            "seed, threads and time limit, or do without a store."
        )
    return StoreError(f"The store holds answers of another problem: {where}. Choose another store.")


def open_or_make(
    store: "str | os.PathLike[str] | Store | None", spread: Array, problem: Problem
) -> Store:
    """Return the store that a user names: an open one, one at a place, or one in memory."""
    if store is None:
        return Store(spread)
    if isinstance(store, Store):
        store.check(spread, _identity(problem))
        return store
    if not isinstance(store, str | os.PathLike):
        raise InvalidInputError(f"`store` must be a folder, a URL or None, got {store!r}.")
    return open_store(store, spread=spread, problem=_identity(problem))


def _check_scale(sampler: Sampler, y: Array, store: Store) -> None:
    """Warn if the scale "auto", which is that of the store's first labels, does not fit others."""
    own, there = spread_of(y), store.spread
    is_better = there.size > 1 and np.ptp(there) > 0 and np.ptp(own) == 0  # from more labels
    if (
        isinstance(sampler.scale, str)
        and not is_better
        and (np.abs(np.log2(there / own)) > 1).any()
    ):
        _logger.warning(
            "%s was made with labels whose spread is %.3g to %.3g times that of these, and the "
            'scale "auto" stays that of the first labels. Give the sampler a scale, or fill '
            "another store with all labels first.",
            store.name,
            (there / own).min(),
            (there / own).max(),
        )


def _identity(problem: Problem) -> dict[str, str]:
    """Return the name and version that a user gave a problem, if any."""
    given = {
        "name": getattr(problem, "name", None),
        "problem_version": getattr(problem, "version", None),
    }
    return {key: value for key, value in given.items() if isinstance(value, str)}


def _report(samples: OracleSamples) -> None:
    """Tell the user, once, what is unusual about the samples."""
    counts, n_candidates = samples._counts, samples.n_instances * samples.n_samples
    if counts.negative:
        _logger.warning(
            "%d of %d candidates led to a better decision than the label itself, by %.3g on "
            "average (the mean regret is %.3g): the solver is a heuristic, or not exact enough. "
            "Their regrets are kept as they are, below zero.",
            counts.negative,
            n_candidates,
            counts.below_zero / counts.negative,
            counts.mean_size,
        )
    if counts.failures:
        _logger.warning(
            "%d of %d samples failed and are left out. The first of each kind: %s To try them "
            'again, use on_failure="raise" or another store.',
            counts.failures,
            n_candidates,
            listed(samples.first_failures.values()),
        )
