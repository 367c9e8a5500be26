"""What predictions cost once decisions are made from them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lodl._frames import check_same_rows, in_columns
from lodl._progress import progress_bar
from lodl._typing import Array, Context, InstanceContext
from lodl._validation import check_labels, context_of
from lodl.errors import InvalidInputError, LodlError, OracleError
from lodl.problems import Problem
from lodl.problems._problem import (
    HOW_TO_TRAVEL,
    check_instances,
    label_columns,
    projected,
    sign_of,
)
from lodl.problems._regret import SLIGHT, check_sense_of, decision_losses, regret_of, regrets
from lodl.problems._what_failed import what_failed

_PATIENCE = 2.0  # seconds before a bar appears: most evaluations are done by then

_Measure: TypeAlias = Callable[[Problem, Array, Array, InstanceContext], Array]


def decision_loss(
    problem: Problem,
    y_hat: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    n_jobs: int | None = None,
    progress: bool = True,
) -> Array:
    """Return the decision loss DL(y_hat, y): the decision's objective under the true label.

    Predictions outside the problem's valid range are projected into it, as they are when a loss is
    learned.

    Args:
        problem: The problem whose solver decides.
        y_hat: Predictions, shape (n, *label_shape). Leading axes, as in
            (models, n, *label_shape), are kept in the result.
        y: Labels, shape (n, *label_shape).
        context: One entry per instance, or None.
        n_jobs: Number of workers, as in joblib.
        progress: Whether to show a bar on a terminal if this takes more than two seconds.

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
    return _per_instance(decision_losses, problem, y_hat, y, context, n_jobs, progress)


def decision_quality(
    problem: Problem,
    y_hat: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    n_jobs: int | None = None,
    progress: bool = True,
) -> Array:
    """Return the negative of `decision_loss`: higher is better, whatever the sense.

    Example:
        >>> y, y_hat = np.array([[3.0, 1.0]]), np.array([[1.0, 2.0]])
        >>> lodl.evaluation.decision_quality(lodl.domains.TopK(1), y_hat, y)
        array([1.])
    """
    return -decision_loss(problem, y_hat, y, context=context, n_jobs=n_jobs, progress=progress)


def regret(
    problem: Problem,
    y_hat: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    n_jobs: int | None = None,
    progress: bool = True,
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
    found = _per_instance(regrets, problem, y_hat, y, context, n_jobs, progress)
    found = regret_of(found.ravel(), 0.0).reshape(found.shape)
    n_negative = int(np.sum(found < -SLIGHT * np.abs(found).mean()))
    check_sense_of(problem, int(np.sum(found > 0)), n_negative)
    return found


def _per_instance(
    measure: _Measure,
    problem: Problem,
    y_hat: npt.ArrayLike,
    y: npt.ArrayLike,
    context: Context,
    n_jobs: int | None,
    progress: bool,
) -> Array:
    """Return the measure of each prediction, with one task per instance."""
    from joblib import Parallel, delayed  # slow to import

    y_hat, y, context = check_predicted(problem, y_hat, y, context)
    sign_of(problem)
    leading = y_hat.shape[: y_hat.ndim - y.ndim]
    per_instance = np.moveaxis(y_hat.reshape(-1, *y.shape), 0, 1)
    results = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_of_instance)(measure, problem, per_instance[i], y[i], context_of(context, i), i)
        for i in range(len(y))
    )
    bar = progress_bar(
        len(y), unit="instances", description="evaluating", enabled=progress, delay=_PATIENCE
    )
    values = []
    try:
        with bar:
            for found in results:
                values.append(found)
                bar.update()
    except pickle.PicklingError as error:
        raise OracleError(
            f"The problem cannot be sent to a worker ({error.__cause__ or error}). {HOW_TO_TRAVEL}"
        ) from error
    return np.stack(values, axis=1).reshape(*leading, len(y))


def check_predicted(
    problem: Problem, y_hat: Any, y: Any, context: Any = None
) -> tuple[Array, Array, Context]:
    """Return predictions, labels and contexts as they are read by position.

    Predictions have the shape of the labels, with or without leading axes. Frames are matched by
    name.
    """
    labels, contexts = check_instances(problem, y, context)
    names = label_columns(problem, y)
    array = check_labels(in_columns(y_hat, names, "y_hat", "of `y`"), "y_hat")
    if array.shape[max(0, array.ndim - labels.ndim) :] != labels.shape:
        raise InvalidInputError(
            f"`y_hat` must have the labels' shape {labels.shape}, with or without leading axes, "
            f"got {array.shape}."
        )
    check_same_rows(y=y, y_hat=y_hat, context=context)
    return array, labels, contexts


def _of_instance(
    measure: _Measure,
    problem: Problem,
    y_hats: Array,
    y: Array,
    context: InstanceContext,
    instance: int,
) -> Array:
    """Measure the predictions of one instance; an error names the instance."""
    try:
        losses = measure(problem, projected(problem, y_hats), y, context)
    except LodlError as error:  # it says what is wrong and what to do
        error.add_note(f"This was at instance {instance}.")
        raise
    except Exception as error:
        raise OracleError(
            f"The solver failed at instance {instance}: {what_failed(error, context)}"
        ) from error
    if not np.isfinite(losses).all():
        value = losses[~np.isfinite(losses)][0]
        raise OracleError(
            f"The solver failed at instance {instance}: the decision loss is {value}, expected a "
            "finite number."
        )
    return losses
