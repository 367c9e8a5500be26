r"""Formulas of decision loss, regret and slope, which no other file computes.

The decision is taken under the prediction and scored under the **true label**:

    DL(y_hat, y) = s * objective(solve(y_hat), y),   s = 1 for "min", -1 for "max"
    regret(y_hat, y) = DL(y_hat, y) - DL(y, y)
    gradient(z, y) = s * d objective(z, v) / dv at v = y

A decision is scored before the solver is called again: some solvers return a view of a buffer that
the next call overwrites. The objective gets a read-only label.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, Decision, InstanceContext
from lodl.errors import ProblemError, ShapeError
from lodl.problems._problem import LinearProblem, Problem, inner_products, sign_of

_ROUNDING = 1e-9  # share of the largest regret: independent of units and added constants
SLIGHT = 1e-6  # share of the mean regret: the error of an interior-point solver
_LAST_DIGITS = 16 * np.finfo(np.float64).eps  # share of the objective: the error of its sum
_MIN_NEGATIVE, _NEGATIVE_SHARE = 8, 0.9  # negative regrets, and their share, with a wrong sense
_STEP = 1e-3  # share of a coordinate's spread: far smaller than it, far larger than rounding


def score(problem: Problem, z: Decision, y: Array, context: InstanceContext) -> float:
    """Return the objective of one decision under the label, as a number."""
    value: Any = problem.objective(z, y, context)
    if value is None:
        raise ProblemError("`objective` returned None: is a `return` missing?")
    if type(value) is not float and (shape := np.shape(value)):
        raise ShapeError(f"The objective must be one number per decision, got shape {shape}.")
    return float(value)


def score_many(problem: Problem, zs: Any, y: Array, context: InstanceContext) -> Array:
    """Return the objective of each decision under the label, shape (k,)."""
    values = np.asarray(problem.objective_many(zs, y, context), dtype=np.float64)
    if values.shape != (len(zs),):
        wanted = f"one number per decision: expected shape ({len(zs)},)"
        raise ShapeError(f"The objective must be {wanted}, got {values.shape}.")
    return values


def is_linear(problem: Problem) -> bool:
    """Return whether the objective is certainly <z, y>."""
    own = type(problem).objective, type(problem).objective_many
    return own == (LinearProblem.objective, LinearProblem.objective_many)


def score_rows(problem: Problem, zs: Any, ys: Array, context: InstanceContext) -> Array:
    """Return the objective of k decisions for each of n labels, row by row, shape (n, k)."""
    k = len(zs) // len(ys)
    if type(problem).objective_many is LinearProblem.objective_many:
        return inner_products(zs, np.repeat(ys, k, axis=0)).reshape(len(ys), k)
    scores = [score_many(problem, zs[k * i : k * i + k], y, context) for i, y in enumerate(ys)]
    return np.stack(scores)


def regret_of(losses: npt.ArrayLike, optimum: npt.ArrayLike) -> Array:
    """Return decision losses less the optimum, which broadcasts with them, 0 for rounding errors.

    These are below a billionth of the largest difference of the same instance (the last axis of
    `losses`), or the last digits of the objective. A loss would learn them like any other cost.
    """
    regret = np.subtract(losses, optimum)
    size = np.abs(regret)
    largest = np.max(size, axis=-1, keepdims=True, where=np.isfinite(size), initial=0.0)
    is_rounding = size <= np.maximum(_ROUNDING * largest, _LAST_DIGITS * np.abs(optimum))
    return np.where(is_rounding, 0.0, regret)


def check_sense_of(problem: Problem, n_positive: int, n_negative: int) -> None:
    """Raise if nearly all predictions that change a decision lead to a better one than the label.

    With a wrong sense all of them do (`n_negative`); an inexact solver errs in both directions.
    """
    n_changed = n_positive + n_negative
    if n_negative >= _MIN_NEGATIVE and n_negative > _NEGATIVE_SHARE * n_changed:
        raise ProblemError(
            f"{n_negative} of {n_changed} predictions that change the decision lead to a better "
            f'one than the label. Is `sense = "{problem.sense}"` of {type(problem).__name__} '
            "wrong, or does `objective` score something other than `solve` optimises?"
        )


def gradients(problem: Problem, zs: Any, y: Array, context: InstanceContext, scale: Array) -> Array:
    """Return the derivative of each decision's loss with respect to the label, shape (k, D).

    Without a `slope`, central differences are taken, one-sided if the objective is not defined on
    one side. `scale`, of the labels in each coordinate, broadcasts to the label.
    """
    if type(problem).slope is LinearProblem.slope:
        return sign_of(problem) * np.array(zs, dtype=np.float64).reshape(len(zs), -1)
    rows = np.empty((len(zs), y.size))
    for row, z in zip(rows, zs, strict=True):
        slope = problem.slope(z, y, context)
        if slope is None:
            return sign_of(problem) * _numeric(problem, zs, y, context, scale)
        if np.size(slope) != y.size:
            wanted = f"the label's shape {y.shape}"
            raise ShapeError(f"`slope` must have {wanted}, got {np.shape(slope)}.")
        row[:] = np.ravel(slope)
    return sign_of(problem) * rows


def _numeric(problem: Problem, zs: Any, y: Array, context: InstanceContext, scale: Array) -> Array:
    """Return the derivative of each objective by central differences, shape (k, D)."""
    steps = np.broadcast_to(_STEP * np.asarray(scale), y.shape).ravel()
    moved = y.copy()
    flat = moved.reshape(-1)
    slopes, values = np.empty((len(zs), y.size)), np.empty((2, len(zs)))
    centre: Array | None = None  # objective at the label, in place of a value that is not finite
    for i, step in enumerate(steps):
        at = y.flat[i] + np.array([[step], [-step]])
        for side in (0, 1):
            flat[i] = at[side, 0]
            values[side] = score_many(problem, zs, read_only(moved), context)
        flat[i] = y.flat[i]
        known = np.isfinite(values)
        if not known.all():
            centre = score_many(problem, zs, y, context) if centre is None else centre
            values, at = np.where(known, values, centre), np.where(known, at, y.flat[i])
        slopes[:, i] = (values[0] - values[1]) / (at[0] - at[1])
    return slopes


def read_only(y: Array) -> Array:
    """Return a view that cannot be written to."""
    view = y.view()
    view.flags.writeable = False
    return view
