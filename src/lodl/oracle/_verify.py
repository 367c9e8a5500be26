"""Whether a store's answers are those of a problem, found out by asking a few of them again."""

import logging
from dataclasses import replace

import numpy as np

from lodl._typing import Array
from lodl.errors import StoreError
from lodl.oracle._failure import OK, listed
from lodl.oracle._known import Known
from lodl.oracle._oracle_samples import OracleSamples
from lodl.oracle._part import Part
from lodl.oracle._run import Runner
from lodl.oracle._run_settings import RunSettings
from lodl.oracle._store import Store
from lodl.oracle._workers import Workers

N_VERIFIED = 4  # instances of a store that are verified, at the label and at one candidate
_N_PROBED = 64  # instances looked at to find them
_SAME, _OTHER = 1e-6, 1e-3  # of the largest regret: as near as solvers repeat an answer, and not
_TINY = 1e-12  # a difference of losses that means nothing

_logger = logging.getLogger(__name__)

_Call = tuple[int, int]  # an instance's number and a column other than 0, or 0 if there is none


def verify(samples: OracleSamples, workers: Workers, settings: RunSettings) -> None:
    """Compute a few stored answers again: they must be this problem's.

    Raises:
        StoreError: They come out different.
    """
    store, problem = samples.store, samples.problem
    if store.n_answers == 0:
        store.verified_with = problem
    calls = [] if store.verified_with is problem else _stored(samples)
    if not calls:
        return
    before, (now, reasons) = _losses(samples, calls), _recompute(samples, calls, workers, settings)
    off = _differences(before, now)
    worst = int(off.argmax())
    if off[worst] > _OTHER:
        again, _ = _recompute(samples, calls, workers, settings)
        number, column = calls[worst]
        raise _wrong_store(
            f"{np.sum(off > _OTHER)} of {len(calls)} stored answers come out different when "
            f"computed again (instance {number}, "
            f"{f'sample {column - 1}' if column else 'the label itself'}: "
            f"{before[worst, -1]:.12g} stored, {now[worst, -1]:.12g} now)",
            is_random=_differences(now, again).max() > _OTHER,
        )
    if not np.isfinite(now).any():
        n_checks = sum(2 if column else 1 for _, column in calls)
        _logger.warning(
            "%d of %d spot checks failed: %s The stored answers could not be verified.",
            n_checks,
            n_checks,
            reasons,
        )
        return
    if off[worst] > _SAME:
        _logger.warning(
            "Stored answers come out slightly different when computed again, by up to %.1g of "
            "the largest regret among them: the solver is not exact, or not deterministic.",
            off[worst],
        )
    store.verified_with = problem


def _stored(samples: OracleSamples) -> list[_Call]:
    """Return a few instances whose answers are stored, each with a costly candidate."""
    calls: list[_Call] = []
    there = [number for number, id_ in enumerate(samples.instances.ids) if id_ in samples.store]
    probes = np.linspace(0, len(there) - 1, min(_N_PROBED, len(there))).astype(int)
    stride = -(-len(probes) // N_VERIFIED)
    for place in (place for first in range(stride) for place in probes[first::stride]):
        label, candidates = _known(samples, there[place], samples.n_samples)
        if label.status[0, 0] == OK and len(calls) < N_VERIFIED:
            size = np.abs(candidates.loss[0] - label.loss[0, 0])  # NaN where a call failed
            column = 1 + int(np.nanargmax(size)) if np.isfinite(size).any() else 0
            calls.append((there[place], column))
    return calls


def _losses(samples: OracleSamples, calls: list[_Call]) -> Array:
    """Return the losses kept at label and candidate, shape (calls, 2)."""
    losses = []
    for number, column in calls:
        label, candidates = _known(samples, number, max(column, 1))
        losses.append([label.loss[0, 0], (candidates if column else label).loss[0, column - 1]])
    return np.array(losses)


def _known(samples: OracleSamples, number: int, n_columns: int) -> tuple[Known, Known]:
    """Return what is known about the label, and about the first candidates, of an instance."""
    label = samples.store.known([samples.instances.ids[number]], 1)
    return label, samples.store.known([samples.series_ids[0][number]], n_columns)


def _recompute(
    samples: OracleSamples, calls: list[_Call], workers: Workers, settings: RunSettings
) -> tuple[Array, str]:
    """Return the losses that the problem gives now, and why calls failed."""
    scratch = Store(samples.store.spread)
    scratch.note = samples.store.note
    again = replace(samples, has_slopes=False, store=scratch)
    quiet = replace(settings, on_failure="skip", max_failure_rate=1.0, progress=False)
    parts = [Part(np.array([number]), c, c + 1) for number, column in calls for c in {0, column}]
    runner = Runner(again, parts, workers, quiet)
    runner.finish()
    return _losses(again, calls), listed(runner.first_failures.values())


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
