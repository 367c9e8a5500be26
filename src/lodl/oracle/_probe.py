"""A first look at a problem: is its objective affine in the label, and its solver exact?"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lodl._typing import Array, Decision, InstanceContext
from lodl.errors import ProblemError
from lodl.oracle._guard import Guard
from lodl.problems import Problem
from lodl.problems._problem import sign_of
from lodl.problems._regret import read_only, score

N_INSTANCES = 3  # instances of a probe
N_POINTS = 4  # points of each instance besides its label
RELATIVE = 1e-6  # of the largest objective: the tolerance at which solvers stop
_LAST_DIGITS = 1e-12  # of an objective: the rounding of its own sum
_N_LABELS = 15  # labels far from the mean, and as many others, that the objective is tried at
_ENOUGH, _MOST = 5, 0.9  # comparisons that tell a wrong sense, and the share that must fail

_logger = logging.getLogger(__name__)


class ProbedInstance(NamedTuple):
    """One instance of a probe; decision 0 is that of the label, which is also point 0."""

    context: InstanceContext
    points: Array
    decisions: Sequence[Decision]
    repeated: Decision  # the decision of a second call at the label


@dataclass(frozen=True)
class Probe:
    """What a few decisions show about a problem.

    Attributes:
        is_affine: Whether the objective is affine in the label wherever it was tried.
        n_compared: Pairs of decisions that differ in value under the prediction of one of them.
        n_worse: Pairs in which the solver's decision for that prediction is the worse one.
        excess: Mean amount by which it is worse.
        size: Mean difference in value of all pairs.
        repeats: Values of the label's decision in two calls, if they differ.
    """

    is_affine: bool
    n_compared: int = 0
    n_worse: int = 0
    excess: float = 0.0
    size: float = 0.0
    repeats: tuple[float, float] | None = None

    def report(self, problem: Problem) -> None:
        """Raise if the sense is wrong; warn of a solver that is random or not exact."""
        if self.repeats is not None:
            _logger.warning(
                "The solver is not deterministic: two calls with the same label led to objectives "
                "of %.6g and %.6g. Fix its seed, threads and time limit, because regrets and "
                "gains contain this noise.",
                *self.repeats,
            )
        elif self.n_compared >= _ENOUGH and self.n_worse > _MOST * self.n_compared:
            other = "max" if problem.sense == "min" else "min"
            raise ProblemError(
                f"In {self.n_worse} of {self.n_compared} comparisons the solver's decision is "
                f"worse, under the very prediction it was made for, than one made for another "
                f'prediction. `sense` of {type(problem).__name__} is "{problem.sense}": should it '
                f'be "{other}"? Or does `objective` score something else than `solve` optimises?'
            )
        elif self.n_worse:
            _logger.warning(
                "The solver is not exact: in %d of %d comparisons its decision was worse, under "
                "the prediction it was made for, than one made for another prediction, by %.3g on "
                "average (decisions differ by %.3g). Regrets are off by as much, and may be "
                "negative. Use a smaller gap or tolerance if you can.",
                *(self.n_worse, self.n_compared, self.excess, self.size),
            )


def probe(guard: Guard, instances: Sequence[ProbedInstance], others: Array) -> Probe:
    """Compare the decisions of a few instances. This evaluates objectives and calls no solver.

    Args:
        guard: Has the problem and the time limit.
        instances: The instances.
        others: Labels of other instances, where the objective is tried, too.
    """
    sign = sign_of(guard.problem)
    differences, repeats, is_affine = [np.empty(0)], None, True
    for instance in instances:
        value = _Value(guard, instance.context)
        table = sign * np.array(
            [[value(z, point) for point in instance.points] for z in instance.decisions]
        )
        own = np.diag(table)
        gain = (own - table)[~np.eye(len(table), dtype=bool)]  # > 0: the other one is better
        scale = np.abs(table[np.isfinite(table)]).max(initial=0.0)
        differences.append(gain[np.abs(gain) > RELATIVE * scale])  # NaN is not
        first, second = (
            value(z, instance.points[0]) for z in (instance.decisions[0], instance.repeated)
        )
        if abs(first - second) > RELATIVE * scale:
            repeats = (first, second)
        is_affine = is_affine and is_straight_everywhere(value, instance, others)
    gains = np.concatenate(differences)
    worse = gains[gains > 0]
    return Probe(
        is_affine,
        gains.size,
        worse.size,
        float(worse.mean()) if worse.size else 0.0,
        float(np.abs(gains).mean()) if gains.size else 0.0,
        repeats,
    )


class _Value:
    """The objective of decisions in one context, NaN where it raises."""

    def __init__(self, guard: Guard, context: InstanceContext) -> None:
        self._guard, self._context = guard, context

    def __call__(self, z: Decision, y: Array) -> float:
        try:
            with self._guard.limited():
                return score(self._guard.problem, z, read_only(y), self._context)
        except Exception:  # noqa: BLE001 - a point may be outside what the objective accepts
            return np.nan


def is_straight_everywhere(value: Any, instance: ProbedInstance, others: Array) -> bool:
    """Return whether the objective of each decision is a straight line wherever it is tried.

    Args:
        value: Returns the objective of a decision under a label.
        instance: The decisions are tried along the lines from the label to the points.
        others: Labels of other instances. Two decisions are tried half-way to each of them, as a
            kink may lie where only few labels are.
    """
    y, decisions = instance.points[0], instance.decisions
    around = [(z, point, 2 * y - point, y) for z in decisions for point in instance.points[1:]]
    between = [(z, y, other, (y + other) / 2) for z in decisions[:2] for other in others]
    return all(_is_straight(value, *line) for line in around + between)


def _is_straight(value: Any, z: Decision, ahead: Array, behind: Array, middle: Array) -> bool:
    """Return whether a decision is worth half-way what it is worth on average at both ends."""
    ends, here = [value(z, ahead), value(z, behind)], value(z, middle)
    change = max(abs(end - here) for end in ends)
    return bool(abs(sum(ends) - 2 * here) <= RELATIVE * change + _LAST_DIGITS * abs(here))


def far_apart(y: Array) -> Array:
    """Return some labels: the furthest from the mean, and others spread evenly."""
    distance = np.abs(y - y.mean(axis=0)).reshape(len(y), -1).max(axis=1)
    order = np.argsort(-distance, kind="stable")
    chosen = np.concatenate([order[:_N_LABELS], order[:: -(-len(y) // _N_LABELS)]])
    return np.asarray(y[np.unique(chosen)])
