"""Whether a store's answers are those of a problem, found out by asking a few of them again."""

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.errors import StoreError
from lodl.oracle._failure import OK, listed
from lodl.oracle._oracle_samples import OracleSamples
from lodl.oracle._part import Part
from lodl.oracle._run import Runner, RunSettings, Wanted
from lodl.oracle._store import Store

N_VERIFIED = 4  # instances of a store that are verified, at the label and at one candidate
_N_PROBED = 64  # instances looked at to find them
_SAME, _OTHER = 1e-6, 1e-3  # of the largest regret: as near as solvers repeat an answer, and not
_TINY = 1e-12  # a difference of losses that means nothing

_logger = logging.getLogger(__name__)

_Calls = list[tuple[int, int]]  # an instance's number and a column other than 0, or 0 for none


Run = Callable[[OracleSamples, list[Part], Wanted, RunSettings], Runner]


def verify(samples: OracleSamples, run: Run, settings: RunSettings) -> None:
    """Compute a few stored answers again: they must be this problem's.

    Raises:
        StoreError: They come out different.
    """
    store, problem = samples.store, samples.problem
    if store.n_answers == 0:
        store.verified_with = problem
    samples = replace(samples, has_slopes=False)
    calls = [] if store.verified_with is problem else _stored(samples)
    if not calls:
        return
    before, (now, reasons) = _losses(samples, calls), _recompute(samples, calls, run, settings)
    off = _differences(before, now)
    worst = int(off.argmax())
    if off[worst] > _OTHER:
        again, _ = _recompute(samples, calls, run, settings)
        number, column = calls[worst]
        where = (
            f"{np.sum(off > _OTHER)} of {len(calls)} stored answers come out different when "
            f"computed again (instance {number}, "
            f"{f'sample {column - 1}' if column else 'the label itself'}: "
            f"{before[worst, -1]:.12g} stored, {now[worst, -1]:.12g} now)"
        )
        if _differences(now, again).max() > _OTHER:
            raise StoreError(
                f"The solver is not deterministic: {where}, and different again the next time. Fix "
                "its seed, threads and time limit, or do without a store."
            )
        raise StoreError(
            f"The store holds answers of another problem: {where}. Choose another store."
        )
    if not np.isfinite(now).any():
        n_checks = sum(2 if column else 1 for _, column in calls)
        _logger.warning(
            "%d of %d spot checks failed: %s The stored answers could not be verified.",
            *(n_checks, n_checks, reasons),
        )
        return
    if off[worst] > _SAME:
        _logger.warning(
            "Stored answers come out slightly different when computed again, by up to %.1g of "
            "the largest regret among them: the solver is not exact, or not deterministic.",
            off[worst],
        )
    store.verified_with = problem


def _stored(samples: OracleSamples) -> _Calls:
    """Return a few instances whose answers are stored, each with a costly candidate."""
    there = [number for number, id_ in enumerate(samples.instances.ids) if id_ in samples.store]
    probes = np.linspace(0, len(there) - 1, min(_N_PROBED, len(there))).astype(int)
    stride = -(-len(probes) // N_VERIFIED)
    numbers = [there[place] for first in range(stride) for place in probes[first::stride]]
    known = samples.known(numbers)
    size = np.abs(known.loss - known.loss[:, :1])  # NaN where a call failed
    size[:, 0] = np.nan
    columns = np.where(np.isfinite(size), size, -1.0).argmax(axis=1).tolist()
    pairs = zip(numbers, columns, known.status[:, 0] == OK, strict=True)
    return [(number, column) for number, column, is_ok in pairs if is_ok][:N_VERIFIED]


def _losses(samples: OracleSamples, calls: _Calls) -> Array:
    """Return the losses kept at label and candidate, shape (calls, 2)."""
    numbers, columns = zip(*calls, strict=True)
    loss = samples.known(numbers).loss
    return np.column_stack([loss[:, 0], loss[np.arange(len(calls)), columns]])


def _recompute(
    samples: OracleSamples, calls: _Calls, run: Run, settings: RunSettings
) -> tuple[Array, str]:
    """Return the losses that the problem gives now, and why calls failed."""
    scratch = Store(samples.store.spread)
    scratch.note = samples.store.note
    again = replace(samples, store=scratch)
    quiet = replace(settings, on_failure="skip", max_failure_rate=1.0, progress=False)
    parts = [Part(np.array([number]), c, c + 1) for number, column in calls for c in {0, column}]
    first_failures = run(again, parts, Wanted(), quiet).first_failures
    return _losses(again, calls), listed(first_failures.values())


def _differences(before: Array, now: Array) -> npt.NDArray[np.float64]:
    """Return how far the losses of each row differ; 0 where a call failed, which says nothing.

    The unit is the largest difference of two stored losses of an instance, or a hundredth of the
    loss itself: a solver may be off by so much more where only a large objective is known.
    """
    unit = np.abs(before[:, 1] - before[:, 0]).max() + np.abs(before) / 100
    off = np.where(np.isfinite(now), np.abs(before - now), 0.0)
    return np.asarray(np.where(off > _TINY, off / np.maximum(unit, _TINY), 0.0).max(axis=1))
