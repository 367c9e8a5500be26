r"""Decision loss and regret, computed here and nowhere else.

The decision is taken under the prediction and scored under the **true label**:

    DL(y_hat, y) = s * objective(solve(y_hat), y),   s = 1 for "min", -1 for "max"
    regret(y_hat, y) = DL(y_hat, y) - DL(y, y)

A regret of less than a billionth of DL(y, y) is rounding, of a sum or of a solver, and counts as 0:
a loss would learn it like any other, and rank correlations would see an order in it.
"""

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, InstanceContext
from lodl.errors import ShapeError
from lodl.problems._problem import Problem, sign_of

_ROUNDING = 1e-9  # of the optimum: in any unit


def decision_losses(
    problem: Problem, y_hats: Array, y: Array, context: InstanceContext = None
) -> Array:
    """Returns DL(y_hat, y) of many predictions for one instance.

    The solver works on a copy of the predictions and the objective on a label that it cannot write
    to, so that neither can change what the caller holds.

    Args:
        problem: The problem; called once for all predictions.
        y_hats: Predictions, shape (k, *label_shape).
        y: The true label, shape label_shape.
        context: The instance's context.

    Returns:
        Decision losses, shape (k,), lower is better.
    """
    sign = sign_of(problem)
    zs = problem.solve_many(np.array(y_hats), context)
    if len(zs) != len(y_hats):
        raise ShapeError(
            f"`solve_many` must return one decision per prediction ({len(y_hats)}), got {len(zs)}."
        )
    values = np.asarray(problem.objective_many(zs, _read_only(y), context), dtype=np.float64)
    if values.shape != (len(y_hats),):
        raise ShapeError(
            f"The objective must be one number per decision: expected shape ({len(y_hats)},), "
            f"got {values.shape}."
        )
    return sign * values


def regret_of(losses: npt.ArrayLike, optimum: npt.ArrayLike) -> Array:
    """Returns decision losses less those at the labels, 0 where they differ by rounding only.

    Args:
        losses: DL(y_hat, y), any shape.
        optimum: DL(y, y) of the same instances, of a shape that broadcasts with `losses`.
    """
    regret = np.subtract(losses, optimum)
    is_rounding = np.abs(regret) <= _ROUNDING * np.abs(optimum)
    return np.where(is_rounding, 0.0, regret)


def regrets(problem: Problem, y_hats: Array, y: Array, context: InstanceContext = None) -> Array:
    """Returns the regrets of many predictions for one instance, shape (k,), by k + 1 calls."""
    losses = decision_losses(problem, np.concatenate([y[np.newaxis], y_hats]), y, context)
    return regret_of(losses[1:], losses[0])


def _read_only(y: Array) -> Array:
    view = y.view()
    view.flags.writeable = False
    return view
