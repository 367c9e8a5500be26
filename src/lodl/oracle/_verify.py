"""Whether a store's answers are those of a problem, found out by asking a few of them again."""

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.errors import StoreError
from lodl.oracle._failure import OK, listed
from lodl.oracle._part import Part
from lodl.oracle._run import Runner, RunSettings, Wanted
from lodl.oracle._samples import Samples
from lodl.oracle._store import Store

N_VERIFIED = 4  # instances computed again, each at its label and at one candidate
N_VERIFIED_IF_CHEAP = 16
_CHEAP = 0.1  # seconds of a call
_N_READ = 256  # instances whose stored answers are read to select them
_SAME, _OTHER = 1e-6, 1e-3  # of the largest regret: as near as solvers repeat an answer, and not
_TINY = 1e-12  # a difference of losses that means nothing

_logger = logging.getLogger(__name__)

_Calls = list[tuple[int, int]]  # an instance's number and a column other than 0, or 0 for none


Run = Callable[[Samples, list[Part], Wanted, RunSettings], Runner]


def verify(samples: Samples, run: Run, settings: RunSettings) -> None:
    """Compute a few stored answers again: they must be this problem's.

    These are at most 32 calls, or 8 if a call takes longer than 0.1 s: the labels and one candidate
    each of some instances. For half of them it is the candidate with the smallest positive regret,
    where the decision nearly ties and a small change of the problem shows; for the others it is the
    one with the largest regret.

    Raises:
        StoreError: They come out different.
    """
    store, problem = samples.store, samples.problem
    if store.is_empty:
        store.verified_with = problem
    samples = replace(samples, has_slopes=False)
    calls = [] if store.verified_with is problem else _stored(samples)
    if not calls:
        return
    before, (now, reasons) = _losses(samples, calls), _recompute(samples, calls, run, settings)
    off, n_checks = _differences(before, now), sum(2 if column else 1 for _, column in calls)
    if off.max() > _OTHER:
        again, _ = _recompute(samples, calls, run, settings)
        worst = np.unravel_index(off.argmax(), off.shape)
        number, column = calls[worst[0]]
        where = (
            f"{np.sum(off.max(axis=1) > _OTHER)} of {len(calls)} stored answers come out different "
            f"when computed again (instance {number}, "
            f"{f'sample {column - 1}' if column and worst[1] else 'the label itself'}: "
            f"{before[worst]:.12g} stored, {now[worst]:.12g} now)"
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
        _logger.warning(
            "%d of %d spot checks failed: %s The stored answers could not be verified.",
            *(n_checks, n_checks, reasons),
        )
        return
    if off.max() > _SAME:
        _logger.warning(
            "Stored answers come out slightly different when computed again, by up to %.1g of "
            "the largest regret among them: the solver is not exact, or not deterministic.",
            off.max(),
        )
    _logger.info(
        "Computed %d stored answers of %d instances again: the store is of this problem.",
        *(n_checks, len(calls)),
    )
    store.verified_with = problem


def _stored(samples: Samples) -> _Calls:
    """Return a few instances whose answers are stored, each with the candidate to compute again."""
    stored = samples.store.has(samples.instances.ids)
    there = [number for number, id_ in enumerate(samples.instances.ids) if id_ in stored]
    places = np.linspace(0, len(there) - 1, min(_N_READ, len(there))).astype(int)
    numbers = np.array([there[place] for place in places], dtype=np.intp)
    known = samples.known(numbers.tolist())
    has_optimum = known.status[:, 0] == OK
    numbers, loss = numbers[has_optimum], known.loss[has_optimum]
    if not len(numbers):
        return []
    regret = np.abs(loss - loss[:, :1])
    regret = np.where(np.isfinite(regret), regret, -1.0)  # NaN where a call failed
    regret[:, 0] = -1.0
    n = min(_n_verified(samples.store), len(numbers))
    ties = np.where(regret > _SAME * regret.max(), regret, np.inf)
    order = ties.min(axis=1).argsort(kind="stable")
    near, others = order[: n // 2], np.sort(order[n // 2 :])
    far = others[np.linspace(0, len(others) - 1, n - n // 2).astype(int)]
    rows = np.concatenate([near, far])
    columns = np.where(np.isfinite(ties.min(axis=1)), ties.argmin(axis=1), regret.argmax(axis=1))
    columns[far] = regret[far].argmax(axis=1)
    return sorted(zip(numbers[rows].tolist(), columns[rows].tolist(), strict=True))


def _n_verified(store: Store) -> int:
    """Return how many instances to compute again: at most a tenth of the answers, if cheap."""
    if store.seconds_per_call > _CHEAP:
        return N_VERIFIED
    return int(np.clip(store.n_answers // 20, N_VERIFIED, N_VERIFIED_IF_CHEAP))


def _losses(samples: Samples, calls: _Calls) -> Array:
    """Return the losses kept at label and candidate, shape (calls, 2)."""
    numbers, columns = zip(*calls, strict=True)
    loss = samples.known(numbers).loss
    return np.column_stack([loss[:, 0], loss[np.arange(len(calls)), columns]])


def _recompute(
    samples: Samples, calls: _Calls, run: Run, settings: RunSettings
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
    """Return how far losses differ, shape (calls, 2). A call that failed counts as 0.

    The unit is the largest difference of two stored losses of an instance, or a hundredth of the
    loss itself: a solver may be off by so much more where only a large objective is known.
    """
    unit = np.abs(before[:, 1] - before[:, 0]).max() + np.abs(before) / 100
    off = np.where(np.isfinite(now), np.abs(before - now), 0.0)
    return np.asarray(np.where(off > _TINY, off / np.maximum(unit, _TINY), 0.0))
