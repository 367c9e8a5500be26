"""Say in plain words where a problem breaks its contract."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import cloudpickle
import numpy as np
import numpy.typing as npt

from lodl._typing import Context
from lodl.errors import ProblemError
from lodl.problems import Problem
from lodl.problems._problem import HOW_TO_TRAVEL, check_instances, sign_of
from lodl.testing._affinity import far_apart, is_straight_everywhere
from lodl.testing._case import (
    N_CANDIDATES,
    N_INSTANCES,
    RELATIVE,
    Case,
    FaultError,
    cases,
    digest_of,
)


def check_problem(
    problem: Problem, y: npt.ArrayLike, *, context: Context = None, seed: int = 0
) -> ProblemReport:
    """Check that a problem does what `lodl` relies on, in about fifty solver calls.

    Checked: the sense; that decisions which are arrays have one shape (lists of positions may have
    any length); that the objective is one finite number; that `solve_many` and `objective_many`
    agree with their single forms; `project`; that the decision under the true label is at least as
    good as under noise; that a decision does not depend on earlier calls; that `solve` and
    `objective` do not change their arguments; and that the problem can be sent to another process.

    Args:
        problem: The problem to check.
        y: Labels, shape (n, *label_shape); the first few instances are used.
        context: One entry per instance, or None. From a frame, each row becomes a dict.
        seed: Random seed for the noise.

    Returns:
        What was tried, and whether the objective is affine in the label; print it.

    Raises:
        InvalidInputError: An argument is not what was expected.
        ProblemError: With one line per finding.

    Example:
        >>> domain = lodl.domains.knapsack(sizes=(10, 1, 1))
        >>> report = lodl.testing.check_problem(domain.problem, domain.splits.train.y)
        >>> report.is_affine
        True
    """
    y, context = check_instances(problem, y, context)
    sign_of(problem)
    findings: dict[str, list[int]] = {}
    others = far_apart(y) if context is None else y[:0]  # a context may not suit another label
    n_instances, n_changed, is_affine = min(N_INSTANCES, len(y)), 0, True
    for instance, case in enumerate(cases(problem, y, context, seed)):
        for finding in _findings(case):
            findings.setdefault(finding, []).append(instance)
        if not findings:
            is_affine = is_affine and is_straight_everywhere(case, others)
            n_changed += _n_changed(case)
    if findings:
        lines = "".join(
            f"\n- instance{'s' if len(at) > 1 else ''} {', '.join(map(str, at))}: {finding}"
            for finding, at in findings.items()
        )
        raise ProblemError(f"{type(problem).__name__} breaks the contract:{lines}")
    n_tried = n_instances * N_CANDIDATES
    return ProblemReport(type(problem).__name__, n_instances, n_tried, n_changed, is_affine)


@dataclass(frozen=True)
class ProblemReport:
    """What `check_problem` found of a problem that keeps its contract.

    Attributes:
        problem: Name of the problem's class.
        n_instances: Number of instances that were tried.
        n_tried: Number of noisy predictions, of all these instances.
        n_changed: How many of them led to a decision of another worth than the label's.
        is_affine: Whether the objective is affine in the label, as far as was tried. Where it is,
            decision families bound the regret; elsewhere their slopes hold near the label only.
    """

    problem: str
    n_instances: int
    n_tried: int
    n_changed: int
    is_affine: bool

    def __str__(self) -> str:
        affinity = (
            "The objective is affine in the label: decision families are exact."
            if self.is_affine
            else "The objective is not affine in the label, so decision families are only valid "
            "near it: also try `ConvexDirectedQuadratic` or `DirectedWeightedMSE`."
        )
        doubt = "" if self.n_changed else " Does `solve` use the prediction?"
        return (
            f"{self.problem} is ok on {self.n_instances} instances: {self.n_changed} of "
            f"{self.n_tried} noisy predictions changed the value of the decision.{doubt} {affinity}"
        )


def _findings(case: Case) -> Iterator[str]:
    """Run the checks in order and stop at the first that fails, as later ones build on it."""
    for check in _CHECKS:
        try:
            found = list(dict.fromkeys(check(case)))  # each finding once
        except FaultError as error:
            found = [str(error)]
        except Exception as error:  # noqa: BLE001 - results may be of any type
            found = [f"its results cannot be compared ({type(error).__name__}: {error})."]
        yield from found
        if found:
            return


def _check_project(case: Case) -> Iterator[str]:
    raw = case.y + case.noise
    block = case.project(raw)
    if block.shape != raw.shape:
        yield (
            f"`project` must keep the shape of its candidates {raw.shape}, got {block.shape}. "
            "It is called with many candidates at once, one per row."
        )
        return
    singles = np.concatenate([case.project(row[np.newaxis]) for row in raw])
    if not np.array_equal(block, singles):
        yield "`project` maps a candidate differently when there are others."
    if not np.allclose(case.project(case.y[np.newaxis])[0], case.y):
        yield "`project` changes the true label: the label lies outside the valid range."


def _check_decision(case: Case) -> Iterator[str]:
    """Compare the shapes of arrays, but not of lists of positions, which may have any length."""
    arrays = [z for z in [case.best, *case.decisions] if isinstance(z, np.ndarray)]
    fixed = {z.shape for z in arrays if z.dtype.kind in "bf"}
    if len(fixed) > 1 or len({z.ndim for z in arrays}) > 1:
        shapes = sorted({z.shape for z in arrays})
        yield f"`solve` returns decisions of different shapes: {shapes}."


def _check_objective(case: Case) -> Iterator[str]:
    for z in [case.best, *case.decisions]:
        given_z, given_y = z.copy() if isinstance(z, np.ndarray) else z, case.y.copy()
        value = case.value(given_z, given_y)
        if not math.isfinite(value):
            yield f"`objective` must be finite, got {value}."
        if not np.array_equal(given_y, case.y):
            yield "`objective` changes the label it is given; let it work on a copy."
        if isinstance(z, np.ndarray) and not np.array_equal(given_z, z):
            yield "`objective` changes the decision it is given; let it work on a copy."


def _check_input_kept(case: Case) -> Iterator[str]:
    y_hat = case.candidates[0].copy()
    z = case.call("solve", y_hat, case.context)
    if not np.array_equal(y_hat, case.candidates[0]):
        yield "`solve` changes the prediction it is given; let it work on a copy."
    case.value(z, case.y)
    if digest_of(case.context) != case.digest:
        yield "`solve` or `objective` changes the context it is given; let it work on a copy."


def _check_call_order(case: Case) -> Iterator[str]:
    believed = case.believed
    backward = [case.solve(y_hat) for y_hat in case.candidates[::-1]]
    again = case.values_under_predictions(backward[::-1])
    if not _close(believed, again):
        yield (
            "the decision depends on earlier calls: the same predictions in another order give "
            f"objectives {_differing(believed, again)}. Reset the solver's state, or seed it, in "
            "each `solve`."
        )


def _check_many(case: Case) -> Iterator[str]:
    n = len(case.candidates)
    zs = case.call("solve_many", case.candidates.copy(), case.context)
    n_found = len(zs) if hasattr(zs, "__len__") else repr(zs)
    if n_found != n:
        yield f"`solve_many` must return one decision per prediction ({n}), got {n_found}."
        return
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


def _check_true_label_is_best(case: Case) -> Iterator[str]:
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


def _check_can_travel(case: Case) -> Iterator[str]:
    try:
        copy = cloudpickle.loads(cloudpickle.dumps(case.problem))
    except Exception as error:  # noqa: BLE001 - a user's attributes may raise anything
        yield (
            f"it cannot be sent to another process ({type(error).__name__}: {error}). "
            f"{HOW_TO_TRAVEL}"
        )
        return
    try:
        believed = replace(case, problem=copy).believed
    except FaultError as error:
        yield f"in a copy sent to another process {error}"
        return
    if not _close(case.believed, believed):
        yield (
            "a copy sent to another process decides differently: objectives "
            f"{_differing(case.believed, believed)}."
        )


def _n_changed(case: Case) -> int:
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
