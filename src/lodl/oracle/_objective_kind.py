"""Objective kinds (affine, smooth or kinked in the label), and a first look at a new problem.

A decision's objective is *affine* if it is a straight line wherever it is tried. Otherwise it is
*kinked* if its slope jumps at the label, as the cost of shortage and excess does, or else *smooth*.
A kink at the label shows in the second difference of the label's own decision z*,

    g(t) = f(z*, y + t u) + f(z*, y - t u) - 2 f(z*, y),

which shrinks like t if there is a kink at y, and like t^2, or to 0, if there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from lodl._arrays import context_of
from lodl._typing import Array, Decision, InstanceContext
from lodl.errors import ProblemError
from lodl.oracle._guard import Guard
from lodl.oracle._run import Calls, Runner, Wanted
from lodl.oracle._samples import Samples
from lodl.problems import Problem
from lodl.problems._problem import sign_of
from lodl.problems._regret import read_only, score

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

_Value = Callable[[Decision, Array], float]  # the objective of a decision under a label, or NaN


class ObjectiveKind(StrEnum):
    """The shape of the objective of a decision as a function of the label."""

    AFFINE = "affine"  # a straight line wherever it was tried
    SMOOTH = "smooth"  # not a straight line, and no kink at the label
    KINKED = "kinked"  # the slope jumps at the label

    @classmethod
    def parse(cls, fact: Any) -> ObjectiveKind | None:
        """Return the kind in a store's fact, or None if it holds none."""
        try:
            return cls(fact)
        except ValueError:
            return None


class TriedInstance(NamedTuple):
    """An instance with decisions made for a few points; the first point is the label."""

    context: InstanceContext
    points: Array
    decisions: Sequence[Decision]
    repeated: Decision  # the decision of a second call at the label


def try_instances(
    samples: Samples, run: Callable[[Samples, list[Calls], Wanted], Runner]
) -> list[TriedInstance]:
    """Call the solver for the first instances, and a second time at their labels.

    Args:
        samples: The instances, with at least `N_POINTS` points each.
        run: Makes calls, and goes on if some of them fail.
    """
    tried: list[TriedInstance] = []
    instances, n = samples.instances, min(_MAX_TRIED, samples.n_instances)
    # Scored again, a solver that is random would change what the store holds.
    scratch = replace(samples, store=samples.store.part(()))
    for first in range(0, n, N_INSTANCES):
        rows = np.arange(first, min(first + N_INSTANCES, n))
        made = run(samples, [Calls(rows, 0, N_POINTS + 1)], Wanted(decisions=True)).decisions
        unscored = Wanted(scores=False, decisions=True)
        again = run(scratch, [Calls(rows, 0, 1)], unscored).decisions
        for row in rows.tolist():
            columns = [c for c in range(N_POINTS + 1) if (row, c) in made]
            if 0 in columns and len(columns) > 1 and (row, 0) in again:
                drawn = samples.draws[0].points(samples.problem, instances, row, 0, N_POINTS)
                points = np.concatenate([instances.y[row : row + 1], drawn])[columns]
                decisions = [made[row, column] for column in columns]
                context = context_of(instances.context, row)
                tried.append(TriedInstance(context, points, decisions, again[row, 0]))
        if len(tried) >= N_INSTANCES:
            break
    return tried


def first_look(
    guard: Guard, instances: Sequence[TriedInstance], others: Array, scale: Array
) -> tuple[ObjectiveKind, str]:
    """Compare the decisions of a few instances. This evaluates objectives and calls no solver.

    Args:
        guard: Has the problem and the time limit.
        instances: The instances.
        others: Labels of other instances, at which the objective is tried, too.
        scale: Standard deviation of the labels, in their shape.

    Returns:
        The kind of the objective, and a warning if the solver is random or not exact.

    Raises:
        ProblemError: The sense is wrong.
    """
    sign, differences, kinds = sign_of(guard.problem), [np.empty(0)], list[ObjectiveKind]()
    warning = ""
    for instance in instances:
        value = _values(guard, instance.context)
        table = sign * np.array(
            [[value(z, point) for point in instance.points] for z in instance.decisions]
        )
        gain = (np.diag(table) - table)[~np.eye(len(table), dtype=bool)]  # > 0: another is better
        size = np.abs(table[np.isfinite(table)]).max(initial=0.0)
        differences.append(gain[np.abs(gain) > RELATIVE * size])  # NaN is not
        again = value(instance.repeated, instance.points[0])
        if abs(sign * again - table[0, 0]) > RELATIVE * size:
            warning = (
                "The solver is not deterministic: two calls with the same label led to objectives "
                f"of {sign * table[0, 0]:.6g} and {again:.6g}. Fix its seed, threads and time "
                "limit, because regrets and gains contain this noise."
            )
        kinds.append(kind_at(value, instance, others, scale))
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


def _values(guard: Guard, context: InstanceContext) -> _Value:
    def value(z: Decision, y: Array) -> float:
        try:
            with guard.limited():
                return score(guard.problem, z, read_only(y), context)
        except Exception:  # noqa: BLE001 - a point may be outside what the objective accepts
            return np.nan

    return value


def kind_of(kinds: Sequence[ObjectiveKind]) -> ObjectiveKind:
    """Return the kind of an objective, given its kind at some instances.

    It is affine if it is so at all of them, and kinked if it is so at half of them: a kink
    elsewhere may lie next to a label by chance.
    """
    if kinds and all(kind is ObjectiveKind.AFFINE for kind in kinds):
        return ObjectiveKind.AFFINE
    n_kinked = sum(kind is ObjectiveKind.KINKED for kind in kinds)
    return ObjectiveKind.KINKED if 0 < len(kinds) <= 2 * n_kinked else ObjectiveKind.SMOOTH


def kind_at(value: _Value, instance: TriedInstance, others: Array, scale: Array) -> ObjectiveKind:
    """Return the kind of the objective at one instance.

    Args:
        value: Returns the objective of a decision under a label.
        instance: The decisions are tried along the lines from the label to the points.
        others: Labels of other instances. Two decisions are tried half-way to each of them, as a
            kink may lie where only few labels are.
        scale: Standard deviation of the labels, in their shape.
    """
    y, decisions, ahead = instance.points[0], instance.decisions, instance.points[1:]
    around = [(z, point, 2 * y - point, y) for z in decisions for point in ahead]
    between = [(z, y, other, (y + other) / 2) for z in decisions[:2] for other in others]
    if all(_is_straight(value, *line) for line in around + between):
        return ObjectiveKind.AFFINE
    n = min(_MAX_COORDINATES, y.size)
    units = np.zeros((n, y.size))
    places = np.linspace(0, y.size - 1, n).astype(int)
    units[np.arange(n), places] = np.broadcast_to(scale, y.shape).ravel()[places]
    directions = [*(ahead - y), *units.reshape(-1, *y.shape)]
    has_kink = any(_has_kink(value, decisions[0], y, u) for u in directions)
    return ObjectiveKind.KINKED if has_kink else ObjectiveKind.SMOOTH


def _is_straight(value: _Value, z: Decision, ahead: Array, behind: Array, middle: Array) -> bool:
    """Return whether a decision is worth half-way what it is worth on average at both ends."""
    bend, unit = _bend(value, z, ahead, behind, middle)
    return bool(bend <= unit)


def _has_kink(value: _Value, z: Decision, y: Array, u: Array) -> bool:
    """Return whether second differences along `u` shrink too slowly for a smooth objective."""
    (wide, _), (narrow, unit) = (_bend(value, z, y + t * u, y - t * u, y) for t in _STEPS)
    return bool(narrow > max(unit, _MIN_RATIO * wide))  # NaN is not


def _bend(
    value: _Value, z: Decision, ahead: Array, behind: Array, middle: Array
) -> tuple[float, float]:
    """Return the size of a second difference, and below which size it is rounding."""
    ends, here = [value(z, ahead), value(z, behind)], value(z, middle)
    change = max(abs(end - here) for end in ends)
    return abs(sum(ends) - 2 * here), RELATIVE * change + _LAST_DIGITS * abs(here)


def far_apart(y: Array) -> Array:
    """Return some labels: the furthest from the mean, and others spread evenly."""
    distance = np.abs(y - y.mean(axis=0)).reshape(len(y), -1).max(axis=1)
    order = np.argsort(-distance, kind="stable")
    chosen = np.concatenate([order[:_N_LABELS], order[:: -(-len(y) // _N_LABELS)]])
    return np.asarray(y[np.unique(chosen)])
