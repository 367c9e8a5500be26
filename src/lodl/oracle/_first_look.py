"""First looks at a problem: is a store its own, its solver exact, its objective affine?

A decision's objective is *affine* if it is a straight line in the label wherever it is tried.
Otherwise it is *kinked* if its slope jumps at the label, as the cost of shortage and excess does,
or else *smooth*. A kink at the label shows in the second difference of the label's own decision z*,

    g(t) = f(z*, y + t u) + f(z*, y - t u) - 2 f(z*, y),

which shrinks like t if there is a kink at y, and like t^2, or to 0, if there is none.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import NamedTuple

import numpy as np

from lodl._arrays import context_of
from lodl._typing import Array, Context, Decision, Index, InstanceContext
from lodl.errors import ProblemError, StoreError
from lodl.oracle._failures import listed
from lodl.oracle._guard import Guard
from lodl.oracle._run import Calls, Runner
from lodl.oracle._samples import Samples
from lodl.problems import Problem
from lodl.problems._problem import sign_of
from lodl.problems._regret import is_linear, read_only, score_many

N_VERIFIED = 4  # instances called again, each at its label and at one point
N_VERIFIED_IF_CHEAP = 16
_N_SEEN = 256  # instances among whose stored answers these are selected
_CHEAP = 0.1  # seconds of a call
_SAME, _OTHER = 1e-6, 1e-3  # share of the largest regret: a solver repeats itself, or it does not
_TINY = 1e-12  # a difference of losses that means nothing
N_INSTANCES = 3  # instances of a first look
_MAX_TRIED = 4 * N_INSTANCES  # instances of a first look at most, if calls fail
N_POINTS = 4  # points of each instance besides its label
RELATIVE = 1e-6  # share of the largest objective: the tolerance at which solvers stop
_LAST_DIGITS = 1e-12  # share of an objective: its rounding
_N_LABELS = 15  # labels far from the mean, and as many others, at which the objective is tried
_MAX_COORDINATES = 16  # coordinates along which a kink is looked for
_STEPS = 2**-5, 2**-8  # share of the distance to a point, of two second differences
_MIN_RATIO = 8**-1.5  # ratio of two second differences, half-way between t^2 (1/64) and t (1/8)
_ENOUGH, _MOST = 5, 0.9  # comparisons that reveal a wrong sense, and the share that must fail

_logger = logging.getLogger(__name__)

_Run = Callable[..., Runner]  # makes calls, and goes on if some fail
_Places = list[tuple[int, int]]  # an instance and a column other than 0, or 0 for none


class ObjectiveKind(StrEnum):
    """The shape of the objective of a decision as a function of the label."""

    AFFINE = "affine"  # a straight line wherever it was tried
    SMOOTH = "smooth"  # not a straight line, and no kink at the label
    KINKED = "kinked"  # the slope jumps at the label


class Tried(NamedTuple):
    """An instance with decisions made for a few points; the first point is the label."""

    context: InstanceContext
    points: Array
    decisions: Sequence[Decision]
    repeated: Decision  # the decision of a second call at the label


def look(
    samples: Samples, run: _Run, apply: Callable[..., tuple[ObjectiveKind, str]]
) -> ObjectiveKind:
    """Return the kind of the objective, and warn if the solver is random or not exact."""
    tried = _try_instances(samples, run)
    if not tried:
        return ObjectiveKind.SMOOTH  # nothing is known
    others = other_labels(samples.y, samples.instances.context)
    kind, warning = apply(_compare, tried, others, samples.instances.label_scale)
    if warning:
        _logger.warning(warning)
    return kind


def _try_instances(samples: Samples, run: _Run) -> list[Tried]:
    """Call the solver for the first instances, and a second time at their labels."""
    tried: list[Tried] = []
    instances, n = samples.instances, min(_MAX_TRIED, samples.n_instances)
    # Scored again, a solver that is random would change what the store holds.
    scratch = replace(samples, store=samples.store.part(()), is_scored=False)
    for first in range(0, n, N_INSTANCES):
        rows = np.arange(first, min(first + N_INSTANCES, n))
        made = run(samples, [Calls(rows, 0, N_POINTS + 1)], returns_decisions=True).decisions
        again = run(scratch, [Calls(rows, 0, 1)], returns_decisions=True).decisions
        for row in rows.tolist():
            columns = [c for c in range(N_POINTS + 1) if (row, c) in made]
            if 0 in columns and len(columns) > 1 and (row, 0) in again:
                drawn = samples.draws[0].points(samples.problem, instances, [row], 0, N_POINTS)[0]
                points = np.concatenate([instances.y[row : row + 1], drawn])[columns]
                decisions = [made[row, column] for column in columns]
                context = context_of(instances.context, row)
                tried.append(Tried(context, points, decisions, again[row, 0]))
        if len(tried) >= N_INSTANCES:
            break
    return tried


def _compare(
    guard: Guard, instances: Sequence[Tried], others: Array, scale: Array
) -> tuple[ObjectiveKind, str]:
    """Return the kind of the objective, and a warning. This evaluates objectives only."""
    sign, warning = sign_of(guard.problem), ""
    differences, kinds = [np.empty(0)], list[ObjectiveKind]()
    for instance in instances:
        points, decisions, context = instance.points, instance.decisions, instance.context
        table = sign * np.stack([_values(guard, decisions, y, context) for y in points], axis=1)
        gain = (np.diag(table) - table)[~np.eye(len(table), dtype=bool)]  # > 0: another is better
        size = np.abs(table[np.isfinite(table)]).max(initial=0.0)
        differences.append(gain[np.abs(gain) > RELATIVE * size])  # NaN is not
        again = float(_values(guard, [instance.repeated], points[0], context)[0])
        if abs(sign * again - table[0, 0]) > RELATIVE * size:
            warning = (
                "The solver is not deterministic: two calls with the same label led to objectives "
                f"of {sign * table[0, 0]:.6g} and {again:.6g}. Fix its seed, threads and time "
                "limit, because regrets and gains contain this noise."
            )
        kinds.append(kind_at(guard, instance, others, scale))
    return kind_of(kinds), warning or _compared(guard.problem, np.concatenate(differences))


def _compared(problem: Problem, gains: Array) -> str:
    """Raise or return a warning if other decisions gain something under a decision's prediction."""
    worse = gains[gains > 0]
    if gains.size >= _ENOUGH and worse.size > _MOST * gains.size:
        other = "max" if problem.sense == "min" else "min"
        raise ProblemError(
            f"In {worse.size} of {gains.size} comparisons the solver's decision is worse, under "
            "the very prediction it was made for, than one made for another prediction. `sense` "
            f'of {type(problem).__name__} is "{problem.sense}": should it be "{other}"? Or does '
            "`objective` score something else than `solve` optimises?"
        )
    if not worse.size:
        return ""
    return (
        f"The solver is not exact: in {worse.size} of {gains.size} comparisons its decision was "
        "worse, under the prediction it was made for, than one made for another prediction, by "
        f"{worse.mean():.3g} on average (decisions differ by {np.abs(gains).mean():.3g}). Regrets "
        "are off by as much, and may be negative. Use a smaller gap or tolerance if you can."
    )


def _values(guard: Guard, zs: Sequence[Decision], y: Array, context: InstanceContext) -> Array:
    """Return the objective of decisions under a label, NaN if it cannot be computed."""
    are_arrays = all(isinstance(z, np.ndarray | np.generic) for z in zs)
    try:
        with guard.limited(len(zs)):
            batch = np.array(zs) if are_arrays and guard.problem.is_vectorised else zs
            return score_many(guard.problem, batch, read_only(y), context)
    except Exception:  # noqa: BLE001 - a point may be outside what the objective accepts
        each = [_values(guard, [z], y, context) for z in zs] if len(zs) > 1 else [[np.nan]]
        return np.concatenate(each)


def kind_of(kinds: Sequence[ObjectiveKind]) -> ObjectiveKind:
    """Return the kind of an objective: affine if it is so at all instances, kinked if at half."""
    # A kink elsewhere may lie next to a label by chance.
    if kinds and all(kind is ObjectiveKind.AFFINE for kind in kinds):
        return ObjectiveKind.AFFINE
    n_kinked = sum(kind is ObjectiveKind.KINKED for kind in kinds)
    return ObjectiveKind.KINKED if 0 < len(kinds) <= 2 * n_kinked else ObjectiveKind.SMOOTH


def kind_at(guard: Guard, instance: Tried, others: Array, scale: Array) -> ObjectiveKind:
    """Return the kind of the objective at one instance."""
    # Two decisions are tried half-way to other labels: a kink may lie where only few labels are.
    y, decisions, ahead = instance.points[0], instance.decisions, instance.points[1:]
    bends_of = partial(_bends, guard, instance.context)
    around = [(decisions, point, 2 * y - point, y) for point in ahead]
    between = [(decisions[:2], y, other, (y + other) / 2) for other in others]
    bends = (bends_of(*line) for line in around + between)
    if is_linear(guard.problem) or all((bend <= unit).all() for bend, unit in bends):
        return ObjectiveKind.AFFINE
    n = min(_MAX_COORDINATES, y.size)
    units = np.zeros((n, y.size))
    places = np.linspace(0, y.size - 1, n).astype(int)
    units[np.arange(n), places] = np.broadcast_to(scale, y.shape).ravel()[places]
    directions = [*(ahead - y), *units.reshape(-1, *y.shape)]
    for u in directions:  # do second differences shrink too slowly for a smooth objective?
        lines = [(decisions[:1], y + t * u, y - t * u, y) for t in _STEPS]
        (wide, _), (narrow, unit) = (bends_of(*line) for line in lines)
        if narrow[0] > max(unit[0], _MIN_RATIO * wide[0]):  # NaN is not
            return ObjectiveKind.KINKED
    return ObjectiveKind.SMOOTH


def _bends(
    guard: Guard, context: InstanceContext, zs: Sequence[Decision], *line: Array
) -> tuple[Array, Array]:
    """Return second differences of objectives, and below which size each is rounding."""
    ahead, behind, centre = (_values(guard, zs, y, context) for y in line)  # ends, and the middle
    change = np.maximum(np.abs(ahead - centre), np.abs(behind - centre))
    bend = np.abs(ahead + behind - 2 * centre)
    return bend, RELATIVE * change + _LAST_DIGITS * np.abs(centre)


def other_labels(y: Array, context: Context) -> Array:
    """Return the labels furthest from the mean, and others spread evenly; none with contexts."""
    if context is not None:
        return y[:0]
    distance = np.abs(y - y.mean(axis=0)).reshape(len(y), -1).max(axis=1)
    order = np.argsort(-distance, kind="stable")
    selected = np.concatenate([order[:_N_LABELS], order[:: -(-len(y) // _N_LABELS)]])
    return np.asarray(y[np.unique(selected)])


def verify(samples: Samples, run: _Run) -> None:
    """Compute a few stored answers again: they must be this problem's.

    At most 32 calls, or 8 if a call takes longer than 0.1 s, are made: at the labels of some
    instances and at one point each. For half of them it is the point with the smallest positive
    regret, where a small change of the problem shows, for the others the point with the largest.
    """
    samples = replace(samples, has_slopes=False)
    places = [] if samples.store.is_verified else _stored(samples)
    if not places:
        return
    before, (now, reasons) = _losses(samples, places), _recompute(samples, places, run)
    off, n_checks = _differences(before, now), sum(2 if column else 1 for _, column in places)
    if off.max() > _OTHER:
        again, _ = _recompute(samples, places, run)
        worst = np.unravel_index(off.argmax(), off.shape)
        number, column = places[worst[0]]
        point = samples.describe_point(column if worst[1] else 0)
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
        other = f"The store holds answers of another problem: {differences}."
        raise StoreError(f"{other} Choose another store.")
    if not np.isfinite(now).any():
        message = "All %d spot checks failed: %s The stored answers could not be verified."
        _logger.warning(message, n_checks, reasons)
        return
    if off.max() > _SAME:
        _logger.warning(
            "Stored answers come out slightly different when computed again, by up to %.1g of "
            "the largest regret among them: the solver is not exact, or not deterministic.",
            off.max(),
        )
    message = "Computed %d stored answers of %d instances again: the store is of this problem."
    _logger.info(message, n_checks, len(places))
    samples.store.is_verified = True


def _stored(samples: Samples) -> _Places:
    """Return a few instances whose answers are stored, each with the point to call again."""
    stored = np.flatnonzero(np.isfinite(samples.optimum))
    numbers = stored[_evenly(len(stored), _N_SEEN)]
    if not len(numbers):
        return []
    loss = samples.table(numbers.tolist()).loss
    regret = np.abs(loss - loss[:, :1])
    regret = np.where(np.isfinite(regret), regret, -1.0)  # NaN if a call failed
    regret[:, 0] = -1.0
    ties = np.where(regret > _SAME * regret.max(), regret, np.inf)
    order = ties.min(axis=1).argsort(kind="stable")
    progress = samples.store.progress
    most = N_VERIFIED if progress.seconds_per_call > _CHEAP else N_VERIFIED_IF_CHEAP
    n = min(max(progress.n_answers // 20, N_VERIFIED), most, len(numbers))
    near, others = order[: n // 2], np.sort(order[n // 2 :])
    rows = np.concatenate([near, others[_evenly(len(others), n - n // 2)]])
    columns = regret.argmax(axis=1)
    near_ties = near[np.isfinite(ties[near].min(axis=1))]
    columns[near_ties] = ties[near_ties].argmin(axis=1)
    return sorted(zip(numbers[rows].tolist(), columns[rows].tolist(), strict=True))


def _evenly(n: int, n_wanted: int) -> Index:
    """Return at most `n_wanted` numbers below `n`, evenly spaced."""
    return np.linspace(0, n - 1, min(n, n_wanted)).astype(np.intp)


def _losses(samples: Samples, places: _Places) -> Array:
    """Return the stored losses at label and point, shape (places, 2)."""
    numbers, columns = zip(*places, strict=True)
    loss = samples.table(numbers).loss
    return np.column_stack([loss[:, 0], loss[np.arange(len(places)), columns]])


def _recompute(samples: Samples, places: _Places, run: _Run) -> tuple[Array, str]:
    """Return the losses that the problem gives now, and why calls failed."""
    again = replace(samples, store=samples.store.part(()))
    calls = [Calls(np.array([number]), c, c + 1) for number, column in places for c in {0, column}]
    reasons = listed(run(again, calls).tally.first_failures.values())
    return _losses(again, places), reasons


def _differences(before: Array, now: Array) -> Array:
    """Return how much losses differ, shape (places, 2). A call that failed counts as 0."""
    # If the objective is large, a solver may be off by a hundredth of it.
    unit = np.abs(before[:, 1] - before[:, 0]).max() + np.abs(before) / 100
    off = np.where(np.isfinite(now), np.abs(before - now), 0.0)
    return np.asarray(np.where(off > _TINY, off / np.maximum(unit, _TINY), 0.0))
