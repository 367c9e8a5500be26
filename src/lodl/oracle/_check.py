"""Checks that a problem keeps its contract, and says in plain words where it does not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import context_of
from lodl._digest import digest
from lodl._typing import Array, Context, Decision, InstanceContext
from lodl.errors import ProblemError
from lodl.oracle._failures import what_failed
from lodl.oracle._guard import Guard
from lodl.oracle._objective_kind import (
    RELATIVE,
    ObjectiveKind,
    TriedInstance,
    kind_at,
    kind_of,
)
from lodl.oracle._signals import CtrlC
from lodl.problems import Problem
from lodl.problems._problem import HOW_TO_TRAVEL, sign_of

N_POINTS = 4  # noisy predictions of each instance
_PLAIN = (np.ndarray, list, tuple, set, Mapping)  # contexts to compare; others may cache
_NEAR = "so decision families are only valid near it: also try"
_ADVICE = {
    ObjectiveKind.AFFINE: "The objective is affine in the label: decision families are exact.",
    ObjectiveKind.SMOOTH: "The objective is not affine in the label but smooth, "
    f"{_NEAR} `ConvexDirectedQuadratic` or `DirectedWeightedMSE`.",
    ObjectiveKind.KINKED: "The objective is not affine: its slope jumps at the label, "
    f"{_NEAR} `ConvexDirectedQuadratic` or `DirectedWeightedMSE`.",
}


@dataclass(frozen=True)
class ProblemReport:
    """What `check_problem` found of a problem that keeps its contract.

    Attributes:
        problem: Name of the problem's class.
        n_instances: Number of instances that were tried.
        n_tried: Number of noisy predictions, of all these instances.
        n_changed: How many of them led to a decision of another worth than the label's.
        objective_kind: How the objective depends on the label, as far as was tried. If it is
            affine, decision families bound the regret; otherwise their slopes hold near the label.
        findings: Broken rules, each with the instances that break it.
    """

    problem: str
    n_instances: int
    n_tried: int
    n_changed: int
    objective_kind: ObjectiveKind
    findings: dict[str, list[int]] = field(default_factory=dict)

    @property
    def is_affine(self) -> bool:
        """Whether the objective is affine in the label."""
        return self.objective_kind is ObjectiveKind.AFFINE

    def checked(self) -> ProblemReport:
        """Return the report itself, or raise its findings."""
        if self.findings:
            lines = "".join(
                f"\n- instance{'s' if len(at) > 1 else ''} {', '.join(map(str, at))}: {finding}"
                for finding, at in self.findings.items()
            )
            raise ProblemError(f"{self.problem} breaks the contract:{lines}")
        return self

    def __str__(self) -> str:
        doubt = "" if self.n_changed else " Does `solve` use the prediction?"
        return (
            f"{self.problem} is ok on {self.n_instances} instances: {self.n_changed} of "
            f"{self.n_tried} noisy predictions changed the value of the decision.{doubt} "
            f"{_ADVICE[self.objective_kind]}"
        )


def check(
    guard: Guard, y: Array, context: Context, others: Array, scale: float, seed: int
) -> ProblemReport:
    """Try the problem on a few instances.

    Args:
        guard: Calls the solver.
        y: Labels of the instances.
        context: One entry per instance, or None.
        others: Labels of other instances, where the objective is tried, too.
        scale: Standard deviation of the noise.
        seed: Random seed of the noise.
    """
    rng = np.random.default_rng(seed)
    findings: dict[str, list[int]] = {}
    n_changed, kinds = 0, list[ObjectiveKind]()
    for instance, label in enumerate(y):
        noise = scale * rng.standard_normal((N_POINTS, *label.shape))
        own = context_of(context, instance)
        case = _Case(guard, label, own, noise, _digest_of(own))
        for finding in _findings(case):
            findings.setdefault(finding, []).append(instance)
        if not findings:
            points = np.concatenate([label[np.newaxis], label + noise])
            decisions = [case.best, *case.decisions]
            tried = TriedInstance(own, points, decisions, case.best)
            kinds.append(kind_at(case.value_or_nan, tried, others, np.asarray(scale)))
            n_changed += _n_changed(case)
    name, n_tried = type(guard.problem).__name__, len(y) * N_POINTS
    return ProblemReport(name, len(y), n_tried, n_changed, kind_of(kinds), findings)


class _FaultError(Exception):
    """A method of the problem raised, or returned something unusable; the message says which."""


@dataclass(frozen=True, eq=False)
class _Case:
    """One instance and the noise to try on it."""

    guard: Guard
    y: Array
    context: InstanceContext
    noise: Array
    digest: str  # of the context before the first call

    @cached_property
    def points(self) -> Array:
        return self.project(self.y + self.noise)

    @cached_property
    def best(self) -> Decision:
        return self.solve(self.y)

    @cached_property
    def decisions(self) -> list[Decision]:
        return [self.solve(y_hat) for y_hat in self.points]

    @property
    def believed(self) -> list[float]:
        """What each decision would be worth if its prediction were true; equal if two tie."""
        return self.values_under_predictions(self.decisions)

    def values_under_predictions(self, zs: Sequence[Decision]) -> list[float]:
        return [self.value(z, y_hat) for z, y_hat in zip(zs, self.points, strict=True)]

    def project(self, y_hats: Array) -> Array:
        return np.asarray(self.call("project", y_hats.copy()))

    def solve(self, y_hat: Array) -> Decision:
        return self.call("solve", y_hat.copy(), self.context)

    def value(self, z: Decision, y: Array) -> float:
        value = self.call("objective", z, y, self.context)
        shape = getattr(value, "shape", ())
        if shape != ():
            raise _FaultError(f"`objective` must return one number, got shape {shape}.")
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise _FaultError(f"`objective` must return one number, got {value!r}.") from error

    def value_or_nan(self, z: Decision, y: Array) -> float:
        """Return the objective, or NaN if it cannot be computed at this label."""
        try:
            return self.value(z, y)
        except _FaultError:
            return math.nan

    @property
    def problem(self) -> Problem:
        return self.guard.problem

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the problem, within the time limit."""
        owner = self.guard if method in ("solve", "solve_many") else self.problem
        try:
            with self.guard.limited(N_POINTS if method == "solve_many" else 1):
                return getattr(owner, method)(*arguments)
        except CtrlC:
            raise
        except ProblemError as error:  # it says what is wrong and what to do
            raise _FaultError(str(error)) from error
        except BaseException as error:
            raise _FaultError(f"`{method}` raised {what_failed(error, self.context)}") from error


def _findings(case: _Case) -> Iterator[str]:
    """Run the checks in order and stop at the first that fails, as later ones build on it."""
    for check in _CHECKS:
        try:
            found = list(dict.fromkeys(check(case)))  # each finding once
        except _FaultError as error:
            found = [str(error)]
        except Exception as error:  # noqa: BLE001 - results may be of any type
            found = [f"its results cannot be compared ({type(error).__name__}: {error})."]
        yield from found
        if found:
            return


def _check_project(case: _Case) -> Iterator[str]:
    raw = case.y + case.noise
    block = case.project(raw)
    if block.shape != raw.shape:
        yield (
            f"`project` must keep the shape of its points {raw.shape}, got {block.shape}. "
            "It is called with many points at once, one per row."
        )
        return
    singles = np.concatenate([case.project(row[np.newaxis]) for row in raw])
    if not np.array_equal(block, singles):
        yield "`project` maps a point differently when there are others."
    if not np.allclose(case.project(case.y[np.newaxis])[0], case.y):
        yield "`project` changes the true label: the label lies outside the valid range."


def _check_decision(case: _Case) -> Iterator[str]:
    """Compare the shapes of arrays, but not of lists of positions, which may have any length."""
    arrays = [z for z in [case.best, *case.decisions] if isinstance(z, np.ndarray)]
    fixed = {z.shape for z in arrays if z.dtype.kind in "bf"}
    if len(fixed) > 1 or len({z.ndim for z in arrays}) > 1:
        shapes = sorted({z.shape for z in arrays})
        yield f"`solve` returns decisions of different shapes: {shapes}."


def _check_objective(case: _Case) -> Iterator[str]:
    for z in [case.best, *case.decisions]:
        given_z, given_y = z.copy() if isinstance(z, np.ndarray) else z, case.y.copy()
        value = case.value(given_z, given_y)
        if not math.isfinite(value):
            yield f"`objective` must be finite, got {value}."
        if not np.array_equal(given_y, case.y):
            yield "`objective` changes the label it is given; let it work on a copy."
        if isinstance(z, np.ndarray) and not np.array_equal(given_z, z):
            yield "`objective` changes the decision it is given; let it work on a copy."


def _check_input_kept(case: _Case) -> Iterator[str]:
    y_hat = case.points[0].copy()
    z = case.call("solve", y_hat, case.context)
    if not np.array_equal(y_hat, case.points[0]):
        yield "`solve` changes the prediction it is given; let it work on a copy."
    case.value(z, case.y)
    if _digest_of(case.context) != case.digest:
        yield "`solve` or `objective` changes the context it is given; let it work on a copy."


def _check_call_order(case: _Case) -> Iterator[str]:
    believed = case.believed
    backward = [case.solve(y_hat) for y_hat in case.points[::-1]]
    again = case.values_under_predictions(backward[::-1])
    if not _close(believed, again):
        yield (
            "the decision depends on earlier calls: the same predictions in another order give "
            f"objectives {_differing(believed, again)}. Reset the solver's state, or seed it, in "
            "each `solve`."
        )


def _check_many(case: _Case) -> Iterator[str]:
    n = len(case.points)
    zs = case.call("solve_many", case.points.copy(), case.context)
    many = case.values_under_predictions(zs)
    if not _close(many, case.believed):
        yield f"`solve_many` disagrees with `solve`: objectives {_differing(many, case.believed)}."
    y = case.y.copy()
    y.flags.writeable = False  # as in sampling
    values = np.asarray(case.call("objective_many", zs, y, case.context))
    if values.shape != (n,):
        yield f"`objective_many` must return shape ({n},), got {values.shape}."
    elif not _close(values, [case.value(z, case.y) for z in zs]):
        yield "`objective_many` disagrees with `objective`."


def _check_true_label_is_best(case: _Case) -> Iterator[str]:
    sign = sign_of(case.problem)
    optimum = sign * case.value(case.best, case.y)
    losses = np.array([sign * case.value(z, case.y) for z in case.decisions])
    tolerance = RELATIVE * max(abs(optimum), float(np.abs(losses).max()))
    n_better = int((losses < optimum - tolerance).sum())
    if n_better:
        other = "max" if case.problem.sense == "min" else "min"
        yield (
            f"the decision under the true label (objective {sign * optimum:.6g}) is worse than "
            f"under noise in {n_better} of {len(losses)} tries (best {sign * losses.min():.6g}). "
            f'`sense` is "{case.problem.sense}": should it be "{other}"? Or does `objective` score '
            "something else than `solve` optimises? A heuristic solver may do this now and then; "
            "its regrets keep their sign."
        )


def _check_can_travel(case: _Case) -> Iterator[str]:
    import cloudpickle  # slow to import

    try:
        copy = cloudpickle.loads(cloudpickle.dumps(case.problem))
    except Exception as error:  # noqa: BLE001 - a user's attributes may raise anything
        yield (
            f"it cannot be sent to another process ({type(error).__name__}: {error}). "
            f"{HOW_TO_TRAVEL}"
        )
        return
    guard = case.guard.copied(copy)
    try:
        believed = replace(case, guard=guard).believed
    except _FaultError as error:
        yield f"in a copy sent to another process {error}"
        return
    finally:
        case.guard.n_calls += guard.n_calls
    if not _close(case.believed, believed):
        yield (
            "a copy sent to another process decides differently: objectives "
            f"{_differing(case.believed, believed)}."
        )


def _n_changed(case: _Case) -> int:
    """Return how many noisy predictions lead to a decision of another worth than the label's."""
    best = case.value(case.best, case.y)
    return sum(not _close([case.value(z, case.y)], [best]) for z in case.decisions)


_CHECKS = (
    _check_project,
    _check_decision,
    _check_objective,
    _check_input_kept,
    _check_call_order,
    _check_many,
    _check_true_label_is_best,
    _check_can_travel,
)


def _close(a: npt.ArrayLike, b: npt.ArrayLike) -> bool:
    """Compare objectives; under a noisy prediction one may be NaN."""
    b = np.asarray(b, dtype=np.float64)
    size = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    return np.allclose(a, b, rtol=RELATIVE, atol=RELATIVE * size, equal_nan=True)


def _differing(a: list[float], b: list[float]) -> str:
    worst = int(np.argmax(np.abs(np.subtract(a, b))))
    return f"{a[worst]:.6g} and {b[worst]:.6g}"


def _digest_of(context: InstanceContext) -> str:
    return digest(context if isinstance(context, _PLAIN) else None)
