"""What predictions cost once decisions are made from them."""

from __future__ import annotations

import numpy.typing as npt

from lodl._typing import Array, Context
from lodl.oracle import Oracle
from lodl.problems import Problem


def decision_loss(
    problem: Problem | Oracle,
    y_hat: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    context: Context = None,
) -> Array:
    """Return the decision loss DL(y_hat, y): the decision's objective under the true label.

    Predictions outside the problem's valid range are projected into it, as they are when a loss is
    learned.

    Args:
        problem: The problem whose solver decides, or an oracle, whose options then apply.
        y_hat: Predictions, shape (n, *label_shape). Leading axes, as in
            (models, n, *label_shape), are kept in the result.
        y: Labels, shape (n, *label_shape).
        context: One entry per instance, or None.

    Returns:
        Decision losses, shape (n,) or (..., n); lower is better.

    Raises:
        InvalidInputError: An argument is not what was expected.
        OracleError: A solver call raised, or its decision loss is not finite; the message names
            the instance.

    Example:
        >>> y, y_hat = np.array([[3.0, 1.0]]), np.array([[1.0, 2.0]])
        >>> lodl.evaluation.decision_loss(lodl.domains.TopK(1), y_hat, y)  # a gain of 1, as a loss
        array([-1.])
    """
    return Oracle.of(problem).decision_loss(y_hat, y, context=context)


def decision_quality(
    problem: Problem | Oracle,
    y_hat: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    context: Context = None,
) -> Array:
    """Return the negative of `decision_loss`: higher is better, whatever the sense.

    Example:
        >>> y, y_hat = np.array([[3.0, 1.0]]), np.array([[1.0, 2.0]])
        >>> lodl.evaluation.decision_quality(lodl.domains.TopK(1), y_hat, y)
        array([1.])
    """
    return -decision_loss(problem, y_hat, y, context=context)


def regret(
    problem: Problem | Oracle,
    y_hat: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    context: Context = None,
) -> Array:
    """Return the regret DL(y_hat, y) - DL(y, y): the cost above that of the best decision.

    The arguments and the shape of the result are those of `decision_loss`. It takes one more solver
    call per instance, at the label. Differences due to rounding count as 0.

    Raises:
        ProblemError: Most decisions are better than those made from the labels: `sense` is wrong.

    Example:
        >>> y, y_hat = np.array([[3.0, 1.0]]), np.array([[1.0, 2.0]])
        >>> lodl.evaluation.regret(lodl.domains.TopK(1), y_hat, y)  # 1 is gained, 3 could have been
        array([2.])
    """
    return Oracle.of(problem).regret(y_hat, y, context=context)
