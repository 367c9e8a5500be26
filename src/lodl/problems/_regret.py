r"""Decision loss, regret and slope, computed here and nowhere else.

The decision is taken under the prediction and scored under the **true label**:

    DL(y_hat, y) = s * objective(solve(y_hat), y),   s = 1 for "min", -1 for "max"
    regret(y_hat, y) = DL(y_hat, y) - DL(y, y)
    gradient(z, y) = s * d objective(z, v) / dv at v = y

A decision is scored before the next one is asked for: some solvers return a view of a buffer that
they write to again. The solver works on a copy of the predictions, and the objective on a label it
cannot write to, so that neither can change what the caller holds.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, Decision, InstanceContext
from lodl.errors import ProblemError, ShapeError
from lodl.problems._problem import Problem, sign_of

_ROUNDING = 1e-9  # of the largest regret beside it: in any unit, whatever constant is added
SLIGHT = 1e-6  # of the mean regret: how far an interior-point solver may be off
_LAST_DIGITS = 16 * np.finfo(np.float64).eps  # of the objective: what its own sum may lose
NO_DECISION = "`solve` returned None: is a `return` missing, or is there no solution?"
_STEP = 1e-3  # of a coordinate's spread: small beside it, large beside rounding


def decide(problem: Problem, y_hat: Array, context: InstanceContext) -> Decision:
    """Return the decision taken under one prediction, which the solver may write to."""
    z = problem.solve(y_hat, context)
    if z is None:
        raise ProblemError(NO_DECISION)
    return z


def decide_many(problem: Problem, y_hats: Array, context: InstanceContext) -> Any:
    """Return the decisions of a vectorised problem, which may write to the predictions."""
    zs = problem.solve_many(y_hats, context)
    if zs is None or (isinstance(zs, Sequence) and any(z is None for z in zs)):
        raise ProblemError("`solve_many` returned None: is a `return` missing?")
    if len(zs) != len(y_hats):
        raise ShapeError(
            f"`solve_many` must return one decision per prediction ({len(y_hats)}), got {len(zs)}."
        )
    return zs


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


def decision_losses(
    problem: Problem, y_hats: Array, y: Array, context: InstanceContext = None
) -> Array:
    """Return DL(y_hat, y) of many predictions for one instance.

    Args:
        problem: The problem.
        y_hats: Predictions, shape (k, *label_shape).
        y: The true label, shape label_shape.
        context: The instance's context.

    Returns:
        Decision losses, shape (k,), lower is better.
    """
    sign, y, y_hats = sign_of(problem), read_only(y), np.array(y_hats)
    if problem.is_vectorised:
        return sign * score_many(problem, decide_many(problem, y_hats, context), y, context)
    values = [score(problem, decide(problem, y_hat, context), y, context) for y_hat in y_hats]
    return sign * np.array(values, dtype=np.float64)


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


def regrets(problem: Problem, y_hats: Array, y: Array, context: InstanceContext = None) -> Array:
    """Return the regrets of many predictions for one instance, shape (k,), by k + 1 calls."""
    losses = decision_losses(problem, np.concatenate([y[np.newaxis], y_hats]), y, context)
    return regret_of(losses[1:], losses[0])


def check_sense_of(problem: Problem, n_positive: int, n_negative: int) -> None:
    """Raise if most decisions that differ in worth are better than those for the labels.

    Args:
        problem: The problem.
        n_positive: How many predictions led to worse decisions than their labels.
        n_negative: How many led to notably better ones.

    Raises:
        ProblemError: Most predictions lead to better decisions than the labels.
    """
    if n_negative > max(n_positive, 2):
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
