"""Verification that a store holds the answers of this problem, by calling a few of them again."""

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from lodl._typing import Array
from lodl.errors import StoreError
from lodl.oracle._failures import OK, listed
from lodl.oracle._run import Calls, Runner
from lodl.oracle._samples import Samples
from lodl.oracle._store import Store

N_VERIFIED = 4  # instances called again, each at its label and at one point
N_VERIFIED_IF_CHEAP = 16
_CHEAP = 0.1  # seconds of a call
_N_READ = 256  # instances whose stored answers are read to select from
_SAME, _OTHER = 1e-6, 1e-3  # share of the largest regret: a solver repeats itself, or it does not
_TINY = 1e-12  # a difference of losses that means nothing

_logger = logging.getLogger(__name__)

_Places = list[tuple[int, int]]  # an instance and a column other than 0, or 0 for none


def verify(samples: Samples, run: Callable[[Samples, list[Calls]], Runner]) -> None:
    """Compute a few stored answers again: they must be this problem's.

    These are at most 32 calls, or 8 if a call takes longer than 0.1 s: the labels and one point
    each of some instances. For half of them it is the point with the smallest positive regret,
    where the decision nearly ties and a small change of the problem shows; for the others it is the
    one with the largest regret.

    Args:
        samples: The samples, whose store is verified.
        run: Makes calls, and goes on if some of them fail.

    Raises:
        StoreError: The answers are different now.
    """
    store, problem = samples.store, samples.problem
    if store.is_empty:
        store.verified_with = problem
    samples = replace(samples, has_slopes=False)
    places = [] if store.verified_with is problem else _stored(samples)
    if not places:
        return
    before, (now, reasons) = _losses(samples, places), _recompute(samples, places, run)
    off, n_checks = _differences(before, now), sum(2 if column else 1 for _, column in places)
    if off.max() > _OTHER:
        again, _ = _recompute(samples, places, run)
        worst = np.unravel_index(off.argmax(), off.shape)
        number, column = places[worst[0]]
        point = f"sample {column - 1}" if column and worst[1] else "the label itself"
        example = f"{before[worst]:.12g} stored, {now[worst]:.12g} now"
        differences = (
            f"{np.sum(off.max(axis=1) > _OTHER)} of {len(places)} stored answers come out "
            f"different when computed again (instance {number}, {point}: {example})"
        )
        if _differences(now, again).max() > _OTHER:
            raise StoreError(
                f"The solver is not deterministic: {differences}, and different again the next "
                "time. Fix its seed, threads and time limit, or do without a store."
            )
        raise StoreError(
            f"The store holds answers of another problem: {differences}. Choose another store."
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
        *(n_checks, len(places)),
    )
    store.verified_with = problem


def _stored(samples: Samples) -> _Places:
    """Return a few instances whose answers are stored, each with the point to call again."""
    ids = samples.store.has(samples.instances.ids)
    stored = np.flatnonzero([id_ in ids for id_ in samples.instances.ids])
    numbers = stored[_evenly(len(stored), _N_READ)]
    table = samples.table(numbers.tolist())
    has_optimum = table.status[:, 0] == OK
    numbers, loss = numbers[has_optimum], table.loss[has_optimum]
    if not len(numbers):
        return []
    regret = np.abs(loss - loss[:, :1])
    regret = np.where(np.isfinite(regret), regret, -1.0)  # NaN if a call failed
    regret[:, 0] = -1.0
    ties = np.where(regret > _SAME * regret.max(), regret, np.inf)
    order = ties.min(axis=1).argsort(kind="stable")
    n = min(_n_verified(samples.store), len(numbers))
    near, others = order[: n // 2], np.sort(order[n // 2 :])
    far = others[_evenly(len(others), n - n // 2)]
    columns = regret.argmax(axis=1)
    near_ties = near[np.isfinite(ties[near].min(axis=1))]
    columns[near_ties] = ties[near_ties].argmin(axis=1)
    rows = np.concatenate([near, far])
    return sorted(zip(numbers[rows].tolist(), columns[rows].tolist(), strict=True))


def _evenly(n: int, n_wanted: int) -> Array:
    """Return at most `n_wanted` numbers below `n`, evenly spaced."""
    return np.linspace(0, n - 1, min(n, n_wanted)).astype(np.intp)


def _n_verified(store: Store) -> int:
    """Return how many instances to call again: if calls are cheap, up to a tenth of the answers."""
    stored = store.progress
    if stored.seconds_per_call > _CHEAP:
        return N_VERIFIED
    return int(np.clip(stored.n_answers // 20, N_VERIFIED, N_VERIFIED_IF_CHEAP))


def _losses(samples: Samples, places: _Places) -> Array:
    """Return the stored losses at label and point, shape (places, 2)."""
    numbers, columns = zip(*places, strict=True)
    loss = samples.table(numbers).loss
    return np.column_stack([loss[:, 0], loss[np.arange(len(places)), columns]])


def _recompute(
    samples: Samples, places: _Places, run: Callable[[Samples, list[Calls]], Runner]
) -> tuple[Array, str]:
    """Return the losses that the problem gives now, and why calls failed."""
    again = replace(samples, store=samples.store.part(()))
    calls = [Calls(np.array([number]), c, c + 1) for number, column in places for c in {0, column}]
    failures = run(again, calls).first_failures
    return _losses(again, places), listed(failures.values())


def _differences(before: Array, now: Array) -> Array:
    """Return how much losses differ, shape (places, 2). A call that failed counts as 0.

    The unit is the largest difference of two stored losses of an instance, plus a hundredth of the
    loss itself: a solver may be off by that much if the objective is large.
    """
    unit = np.abs(before[:, 1] - before[:, 0]).max() + np.abs(before) / 100
    off = np.where(np.isfinite(now), np.abs(before - now), 0.0)
    return np.asarray(np.where(off > _TINY, off / np.maximum(unit, _TINY), 0.0))
