"""`Oracle.check`: whether a problem keeps its contract, and in which words it does not."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import context_of
from lodl._digest import digest
from lodl._html import notebook_html
from lodl._typing import Array, Context, Decision, Flags, InstanceContext
from lodl.errors import ProblemError
from lodl.oracle._failures import what_failed
from lodl.oracle._first_look import (
    N_INSTANCES,
    N_POINTS,
    RELATIVE,
    ObjectiveKind,
    Tried,
    kind_at,
    kind_of,
    other_labels,
)
from lodl.oracle._guard import PLAIN, REFUSES, CtrlC, Guard, feasible
from lodl.oracle._task import CHANGES_CONTEXT
from lodl.problems._problem import HOW_TO_TRAVEL, LinearProblem, sign_of

_TRY = "so decision families hold only near it: try"
_KINDS = {
    ObjectiveKind.AFFINE: "affine in the label: decision families are exact.",
    ObjectiveKind.SMOOTH: f"not affine in the label but smooth, {_TRY} `DirectedWeightedMSE`.",
    ObjectiveKind.KINKED: f"not affine: it has a kink at the label, {_TRY} `DirectedWeightedMAE`.",
}
_NEAR = " A call also brings the decisions next to its own."


@dataclass(frozen=True)
class ProblemReport:
    """The result of checking a problem."""

    problem: str  #: Name of the problem's class.
    n_instances: int  #: Number of instances that were tried.
    n_tried: int  #: Number of noisy predictions, of all these instances.
    n_changed: int  #: How many of them led to a decision of another worth than the label's.
    objective_kind: ObjectiveKind  #: How the objective depends on the label.
    #: Broken rules, with their instances.
    findings: dict[str, list[int]] = field(default_factory=dict)
    has_neighbours: bool = False  #: Whether a call also brings the decisions next to its own.

    @property
    def is_affine(self) -> bool:
        """Whether the objective is affine in the label."""
        return self.objective_kind is ObjectiveKind.AFFINE

    def checked(self) -> "ProblemReport":
        """Return the report itself, or raise its findings."""
        if self.findings:
            lines = [f"{self.problem} breaks the contract:"]
            for finding, at in self.findings.items():
                instances = "instances" if len(at) > 1 else "instance"
                lines.append(f"- {instances} {', '.join(map(str, at))}: {finding}")
            raise ProblemError("\n".join(lines))
        return self

    def __str__(self) -> str:
        doubt = "" if self.n_changed else " Does `solve` use the prediction?"
        return (
            f"{self.problem} is ok on {self.n_instances} instances: {self.n_changed} of "
            f"{self.n_tried} noisy predictions changed the value of the decision.{doubt} "
            f"The objective is {_KINDS[self.objective_kind]}{_NEAR * self.has_neighbours}"
        )

    def _repr_html_(self) -> str:
        return notebook_html("", [str(self)])


def check(
    y: Array, context: Context, seed: int, apply: Callable[..., ProblemReport]
) -> ProblemReport:
    """Try a problem on a few instances and noisy predictions; `apply` runs in a worker."""
    few, scale, others = slice(0, N_INSTANCES), float(y.std()) or 1.0, other_labels(y, context)
    contexts = None if context is None else context[few]
    return apply(_report, y[few], contexts, others, scale, seed).checked()


def _report(
    guard: Guard, y: Array, context: Context, others: Array, scale: float, seed: int
) -> ProblemReport:
    rng, kinds = np.random.default_rng(seed), list[ObjectiveKind]()
    findings, n_changed = dict[str, list[int]](), 0
    for instance, label in enumerate(y):
        noise = scale * rng.standard_normal((N_POINTS, *label.shape))
        own = context_of(context, instance)
        trial = _Trial(guard, label, own, label + noise, _digest_of(own))
        for finding in _findings(trial):
            findings.setdefault(finding, []).append(instance)
        if not findings:
            points = np.concatenate([label[np.newaxis], trial.raw])
            tried = Tried(trial.context, points, trial.decisions, trial.decisions[0])
            kinds.append(kind_at(guard, tried, others, np.asarray(scale)))
            best, *values = (trial.value(z, label) for z in trial.decisions)
            n_changed += sum(not _close([value], [best]) for value in values)
    name, n_tried = type(guard.problem).__name__, len(y) * N_POINTS
    kind, is_near = kind_of(kinds), guard.problem.has_neighbours(context_of(context, 0))
    return ProblemReport(name, len(y), n_tried, n_changed, kind, findings, is_near)


class _FaultError(Exception):
    """A method of the problem raised, or returned something unusable; the message says which."""


@dataclass(frozen=True, eq=False)
class _Trial:
    """One instance and the noisy predictions to try on it."""

    guard: Guard
    y: Array
    context: InstanceContext
    raw: Array  # noisy predictions before they are projected
    context_digest: str  # before the first call

    @cached_property
    def points(self) -> Array:
        return self.project(self.raw)

    @cached_property
    def decisions(self) -> list[Decision]:
        return [self.solve(y_hat) for y_hat in (self.y, *self.points)]

    def believed(self, zs: Sequence[Decision] | None = None) -> list[float]:
        """Return the value of each point's decision under that point. Equal if two tie."""
        given = self.decisions[1:] if zs is None else zs
        return [self.value(z, y_hat) for z, y_hat in zip(given, self.points, strict=True)]

    def project(self, y_hats: Array) -> Array:
        return np.asarray(self.call(self.guard.problem, "project", y_hats.copy()))

    def solve(self, y_hat: Array) -> Decision:
        return self.call(self.guard, "solve", y_hat.copy(), self.context)

    def value(self, z: Decision, y: Array) -> float:
        value = self.call(self.guard.problem, "objective", z, y, self.context)
        shape = getattr(value, "shape", ())
        with suppress(TypeError, ValueError):
            if shape == ():
                return float(value)
        got = repr(value) if shape == () else f"shape {shape}"
        raise _FaultError(f"`objective` must return one number, got {got}.")

    def allowed(self, zs: Sequence[Decision]) -> Flags | None:
        """Return which decisions the context allows, or None if the problem cannot tell."""
        if not isinstance(self.guard.problem, LinearProblem) or self.context is None:
            return None
        try:
            return feasible(self.guard.problem, np.array(zs, np.float64), self.context)
        except ProblemError as error:
            raise _FaultError(str(error)) from error

    def call(self, owner: Any, method: str, *arguments: Any) -> Any:
        """Call a method of the guard or the problem, within the time limit."""
        try:
            with self.guard.limited(N_POINTS if method == "solve_many" else 1):
                return getattr(owner, method)(*arguments)
        except CtrlC:
            raise
        except ProblemError as error:  # it says what is wrong and what to do
            raise _FaultError(str(error)) from error
        except BaseException as error:
            raise _FaultError(f"`{method}` raised {what_failed(error, self.context)}") from error


def _findings(trial: _Trial) -> Iterator[str]:
    """Run the checks in order and stop at the first that fails, as later ones build on it."""
    for rule in _RULES:
        try:
            broken = list(dict.fromkeys(rule(trial)))  # each finding once
        except _FaultError as error:
            broken = [str(error)]
        except Exception as error:  # noqa: BLE001 - results may be of any type
            broken = [f"its results cannot be compared ({type(error).__name__}: {error})."]
        yield from broken
        if broken:
            return


def _project(trial: _Trial) -> Iterator[str]:
    raw, block = trial.raw, trial.project(trial.raw)
    if block.shape != raw.shape:
        yield (
            f"`project` must keep the shape of its points {raw.shape}, got {block.shape}. "
            "It is called with many points at once, one per row."
        )
        return
    if not np.array_equal(block, np.concatenate([trial.project(row[np.newaxis]) for row in raw])):
        yield "`project` maps a point differently when there are others."
    if not np.allclose(trial.project(trial.y[np.newaxis])[0], trial.y):
        yield "`project` changes the true label: the label lies outside the valid range."


def _decision(trial: _Trial) -> Iterator[str]:
    """Compare the shapes of arrays, but not of lists of positions, which may have any length."""
    arrays = [z for z in trial.decisions if isinstance(z, np.ndarray)]
    fixed, shapes = {z.shape for z in arrays if z.dtype.kind in "bf"}, {z.shape for z in arrays}
    if len(fixed) > 1 or len(set(map(len, shapes))) > 1:
        yield f"`solve` returns decisions of different shapes: {sorted(shapes)}."


def _objective(trial: _Trial) -> Iterator[str]:
    for z in trial.decisions:
        given_z, given_y = z.copy() if isinstance(z, np.ndarray) else z, trial.y.copy()
        value = trial.value(given_z, given_y)
        if not math.isfinite(value):
            yield f"`objective` must be finite, got {value}."
        if not np.array_equal(given_y, trial.y):
            yield "`objective` changes the label it is given; let it work on a copy."
        if isinstance(z, np.ndarray) and not np.array_equal(given_z, z):
            yield "`objective` changes the decision it is given; let it work on a copy."


def _arguments(trial: _Trial) -> Iterator[str]:
    y_hat = trial.points[0].copy()
    z = trial.call(trial.guard, "solve", y_hat, trial.context)
    if not np.array_equal(y_hat, trial.points[0]):
        yield "`solve` changes the prediction it is given; let it work on a copy."
    trial.value(z, trial.y)
    if _digest_of(trial.context) != trial.context_digest:
        yield CHANGES_CONTEXT


def _order(trial: _Trial) -> Iterator[str]:
    believed = trial.believed()
    again = trial.believed([trial.solve(y_hat) for y_hat in trial.points[::-1]][::-1])
    if not _close(believed, again):
        yield (
            "the decision depends on earlier calls: the same predictions in another order give "
            f"objectives {_differing(believed, again)}. Reset or seed the solver in each `solve`."
        )


def _many(trial: _Trial) -> Iterator[str]:
    problem, n = trial.guard.problem, len(trial.points)
    zs = trial.call(trial.guard, "solve_many", trial.points.copy(), trial.context)
    many, believed = trial.believed(zs), trial.believed()
    if not _close(many, believed):
        yield f"`solve_many` disagrees with `solve`: objectives {_differing(many, believed)}."
    y = trial.y.copy()
    y.flags.writeable = False  # as in sampling
    values = np.asarray(trial.call(problem, "objective_many", zs, y, trial.context))
    if values.shape != (n,):
        yield f"`objective_many` must return shape ({n},), got {values.shape}."
    elif not _close(values, [trial.value(z, trial.y) for z in zs]):
        yield "`objective_many` disagrees with `objective`."


def _feasible(trial: _Trial) -> Iterator[str]:
    allowed = trial.allowed(trial.decisions)
    if allowed is not None and not allowed.all():
        yield REFUSES % (len(allowed) - allowed.sum(), len(allowed))


def _label_is_best(trial: _Trial) -> Iterator[str]:
    problem, sign = trial.guard.problem, sign_of(trial.guard.problem)
    losses = sign * np.array([trial.value(z, trial.y) for z in trial.decisions])
    n_better = int((losses[1:] < losses[0] - RELATIVE * np.abs(losses).max()).sum())
    if n_better:
        optimum, best = sign * losses[0], sign * losses.min()
        other = "max" if problem.sense == "min" else "min"
        yield (
            f"the decision under the true label (objective {optimum:.6g}) is worse than under "
            f"noise in {n_better} of {len(losses) - 1} tries (best {best:.6g}). Should `sense` be "
            f'"{other}"? Does `objective` score something else than `solve` optimises? A heuristic '
            "solver may do this now and then; its regrets keep their sign."
        )


def _can_travel(trial: _Trial) -> Iterator[str]:
    import cloudpickle  # slow to import

    try:
        copied = cloudpickle.loads(cloudpickle.dumps(trial.guard.problem))
    except Exception as error:  # noqa: BLE001 - a user's attributes may raise anything
        reason = f"{type(error).__name__}: {error}"
        yield f"it cannot be sent to another process ({reason}). {HOW_TO_TRAVEL}"
        return
    guard, believed = copy(trial.guard), trial.believed()
    guard.problem, guard.n_calls = copied, 0
    try:
        afterwards = replace(trial, guard=guard).believed()
    except _FaultError as error:
        yield f"in a copy sent to another process {error}"
        return
    finally:
        trial.guard.n_calls += guard.n_calls
    if not _close(believed, afterwards):
        difference = _differing(believed, afterwards)
        yield f"a copy sent to another process decides differently: objectives {difference}."


_RULES = (
    *(_project, _decision, _objective, _arguments, _order, _many),
    *(_feasible, _label_is_best, _can_travel),
)


def _close(a: npt.ArrayLike, b: npt.ArrayLike) -> bool:
    """Compare objectives. Under a noisy prediction one may be NaN."""
    b = np.asarray(b, dtype=np.float64)
    size = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    return np.allclose(a, b, rtol=RELATIVE, atol=RELATIVE * size, equal_nan=True)


def _digest_of(context: InstanceContext) -> str:
    return digest(context if isinstance(context, PLAIN) else None)


def _differing(a: list[float], b: list[float]) -> str:
    worst = int(np.argmax(np.abs(np.subtract(a, b))))
    return f"{a[worst]:.6g} and {b[worst]:.6g}"
