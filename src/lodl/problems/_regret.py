r"""Decision loss, regret and slope, computed here and nowhere else.

The decision is taken under the prediction and scored under the **true label**:

    DL(y_hat, y) = s * objective(solve(y_hat), y),   s = 1 for "min", -1 for "max"
    regret(y_hat, y) = DL(y_hat, y) - DL(y, y)
    gradient(z, y) = s * d objective(z, v) / dv at v = y

A decision is scored before the solver is called again: some solvers return a view of a buffer that
they write to again. The objective gets a label it cannot write to, so that it cannot change what
the caller holds.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, Decision, InstanceContext
from lodl.errors import ProblemError, ShapeError
from lodl.problems._problem import Problem, sign_of

_ROUNDING = 1e-9  # of the largest regret beside it: in any unit, whatever constant is added
SLIGHT = 1e-6  # of the mean regret: how far an interior-point solver may be off
_LAST_DIGITS = 16 * np.finfo(np.float64).eps  # of the objective: what its own sum may lose
_ENOUGH, _MOST = 8, 0.9  # regrets that tell a wrong sense, and the share that is negative then
_STEP = 1e-3  # of a coordinate's spread: small beside it, large beside rounding


def score(problem: Problem, z: Decision, y: Array, context: InstanceContext) -> float:
    """Return the objective of one decision under the label, as a number."""
    value: Any = problem.objective(z, y, context)
    return value if type(value) is float else _as_number(value)


def score_many(problem: Problem, zs: Any, y: Array, context: InstanceContext) -> Array:
    """Return the objective of each decision under the label, shape (k,)."""
    values = np.asarray(problem.objective_many(zs, y, context), dtype=np.float64)
    if values.shape != (len(zs),):
        raise ShapeError(
            f"The objective must be one number per decision: expected shape ({len(zs)},), "
            f"got {values.shape}."
        )
    return values


def regret_of(losses: npt.ArrayLike, optimum: npt.ArrayLike) -> Array:
    """Return decision losses less those at the labels, 0 where they differ by rounding only.

    Rounding, of a sum or of a solver, is a difference of less than a billionth of the largest one
    beside it, or of the last digits of the objective. A loss would learn it like any other cost,
    and rank correlations would see an order in it.

    Args:
        losses: DL(y_hat, y), any shape; differences along the last axis are compared.
        optimum: DL(y, y) of the same instances, of a shape that broadcasts with `losses`.
    """
    regret = np.subtract(losses, optimum)
    size = np.abs(regret)
    largest = np.max(size, axis=-1, keepdims=True, where=np.isfinite(size), initial=0.0)
    is_rounding = size <= np.maximum(_ROUNDING * largest, _LAST_DIGITS * np.abs(optimum))
    return np.where(is_rounding, 0.0, regret)


def check_sense_of(problem: Problem, n_positive: int, n_negative: int) -> None:
    """Raise if nearly all decisions that differ in worth are better than those for the labels.

    With a wrong sense all of them are. Those of an inexact solver err in both directions.

    Args:
        problem: The problem.
        n_positive: How many predictions led to worse decisions than their labels.
        n_negative: How many led to notably better ones.

    Raises:
        ProblemError: Nearly all predictions lead to better decisions than the labels.
    """
    if n_negative >= _ENOUGH and n_negative > _MOST * (n_positive + n_negative):
        raise ProblemError(
            f"{n_negative} of {n_negative + n_positive} predictions that change the decision lead "
            f'to a better one than the label itself. Is `sense = "{problem.sense}"` of '
            f"{type(problem).__name__} wrong, or does `objective` score something else than "
            "`solve` optimises?"
        )


def gradients(
    problem: Problem, zs: Any, y: Array, context: InstanceContext, spread: Array
) -> Array:
    """Return the derivative of each decision's loss by the label, at the label, shape (k, D).

    It is the problem's own `slope`, or central differences of the objective; where the objective
    is not defined on one side, differences to the other.

    Args:
        problem: The problem.
        zs: Decisions.
        y: The label, read-only.
        context: The instance's context.
        spread: How far labels lie apart in each coordinate, which broadcasts to the label.
    """
    slopes = [problem.slope(z, y, context) for z in zs[:1]]
    if slopes[0] is None:
        return sign_of(problem) * _differences(problem, zs, y, context, spread)
    slopes += [problem.slope(z, y, context) for z in zs[1:]]
    if any(slope is None for slope in slopes):
        return sign_of(problem) * _differences(problem, zs, y, context, spread)
    found = np.array([np.ravel(np.asarray(slope, dtype=np.float64)) for slope in slopes])
    if found.shape != (len(zs), y.size):
        raise ShapeError(
            f"`slope` must have the label's shape {y.shape}, got {np.shape(slopes[0])}."
        )
    return sign_of(problem) * found


def _differences(
    problem: Problem, zs: Any, y: Array, context: InstanceContext, spread: Array
) -> Array:
    steps = np.broadcast_to(_STEP * np.asarray(spread), y.shape).ravel()
    moved = y.copy()
    flat = moved.reshape(-1)
    slopes = np.empty((len(zs), y.size))
    centre: Array | None = None
    for i, step in enumerate(steps):
        sides = []
        for value in (y.flat[i] + step, y.flat[i] - step):
            flat[i] = value
            sides.append((score_many(problem, zs, read_only(moved), context), value))
        flat[i] = y.flat[i]
        (above, high), (below, low) = sides
        if not (np.isfinite(above).all() and np.isfinite(below).all()):
            centre = score_many(problem, zs, y, context) if centre is None else centre
            above, high = _or(above, high, centre, y.flat[i])
            below, low = _or(below, low, centre, y.flat[i])
        slopes[:, i] = (above - below) / (high - low)
    return slopes


def _or(values: Array, at: float, centre: Array, here: float) -> tuple[Array, Any]:
    """Return the values of one side, those of the label where they are not finite."""
    known = np.isfinite(values)
    return np.where(known, values, centre), np.where(known, at, here)


def read_only(y: Array) -> Array:
    """Return a view that cannot be written to."""
    view = y.view()
    view.flags.writeable = False
    return view


def _as_number(value: Any) -> float:
    if value is None:
        raise ProblemError("`objective` returned None: is a `return` missing?")
    shape = np.shape(value)
    if shape != ():
        raise ShapeError(f"The objective must be one number per decision, got shape {shape}.")
    return float(value)
