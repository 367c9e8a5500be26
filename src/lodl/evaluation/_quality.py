"""What predictions are worth, once decisions are taken from them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from lodl.errors import InvalidInputError, LodlError, OracleError
from lodl.problems import Problem, check_problem_type, decision_losses, sign_of
from lodl.typing import Array, Context, InstanceContext
from lodl.validation import check_context, check_labels, check_positive, context_of


def decision_loss(
    problem: Problem,
    y_hat: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    n_jobs: int | None = None,
) -> Array:
    """Returns DL(y_hat, y) of each instance: the decision's objective under the true label.

    Args:
        problem: The problem whose solver decides.
        y_hat: Predictions, shape (n, *label_shape). Further axes in front, as in
            (models, n, *label_shape), are kept in the result.
        y: Labels, shape (n, *label_shape).
        context: One entry per instance, or None.
        n_jobs: Workers, as in joblib.

    Returns:
        Decision losses, shape (n,) or (..., n); lower is better.

    Raises:
        InvalidInputError: An argument is not what was expected.
        OracleError: A call raised, or its decision loss is not finite; the instance is named.
    """
    check_problem_type(problem)
    sign_of(problem)
    y = check_labels(y)
    y_hat = _check_repeated_predictions(y_hat, y)
    check_context(context, len(y))
    in_front = y_hat.shape[: y_hat.ndim - y.ndim]
    per_instance = np.moveaxis(y_hat.reshape(-1, *y.shape), 0, 1)
    losses = Parallel(n_jobs=n_jobs)(
        delayed(_losses_of_instance)(problem, per_instance[i], y[i], context_of(context, i), i)
        for i in range(len(y))
    )
    return np.stack(losses, axis=1).reshape(*in_front, len(y))


def decision_quality(
    problem: Problem,
    y_hat: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    n_jobs: int | None = None,
) -> Array:
    """Returns the negative of `decision_loss`: higher is better, whatever the sense."""
    return -decision_loss(problem, y_hat, y, context=context, n_jobs=n_jobs)


def regret(
    problem: Problem,
    y_hat: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    n_jobs: int | None = None,
) -> Array:
    """Returns DL(y_hat, y) - DL(y, y) of each instance, shaped like `decision_loss`."""
    optimum = decision_loss(problem, y, y, context=context, n_jobs=n_jobs)
    return decision_loss(problem, y_hat, y, context=context, n_jobs=n_jobs) - optimum


def random_predictions(shape: tuple[int, ...], seed: int = 0) -> Array:
    """Returns predictions uniform on [0, 1], the paper's zero point of decision quality."""
    return np.random.default_rng(seed).random(shape)


@dataclass(frozen=True)
class QualityScale:
    """The mean decision quality of random predictions and of the true labels."""

    random: float
    optimal: float

    def normalise(self, quality: npt.ArrayLike) -> Array:
        """Returns mean decision quality on a scale where random is 0 and optimal is 1.

        Args:
            quality: Decision quality with the instance on the last axis; that axis is averaged.
        """
        mean = np.mean(np.asarray(quality, dtype=np.float64), axis=-1)
        return np.asarray((mean - self.random) / (self.optimal - self.random))


def quality_scale(
    problem: Problem,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    seed: int = 0,
    n_random: int = 10,
    n_jobs: int | None = None,
) -> QualityScale:
    """Measures the two ends of normalised decision quality on given labels.

    Args:
        problem: The problem whose solver decides.
        y: Labels, shape (n, *label_shape).
        context: One entry per instance, or None.
        seed: Of the random predictions.
        n_random: Random predictions per instance; more make the zero point steadier.
        n_jobs: Workers, as in joblib.
    """
    y = check_labels(y)
    n_random = check_positive("n_random", n_random)
    y_random = random_predictions((n_random, *y.shape), seed)
    both = np.concatenate([y_random, y[np.newaxis]])
    quality = decision_quality(problem, both, y, context=context, n_jobs=n_jobs).mean(axis=1)
    random, optimal = float(quality[:-1].mean()), float(quality[-1])
    if not optimal > random:
        raise InvalidInputError(
            f"Decision quality cannot be normalised: random predictions give {random:.6g}, the "
            f"true labels {optimal:.6g}. Is `sense` right, and do the labels decide anything?"
        )
    return QualityScale(random=random, optimal=optimal)


def normalised_decision_quality(
    problem: Problem,
    y_hat: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> float:
    """Returns mean decision quality scaled so that random predictions give 0 and labels give 1.

    To score several models on the same labels, take `quality_scale` once and use its `normalise`.
    """
    scale = quality_scale(problem, y, context=context, seed=seed, n_jobs=n_jobs)
    quality = decision_quality(problem, y_hat, y, context=context, n_jobs=n_jobs)
    return float(scale.normalise(quality))


def _check_repeated_predictions(y_hat: npt.ArrayLike, y: Array) -> Array:
    array = check_labels(y_hat, "y_hat")
    if array.shape[max(0, array.ndim - y.ndim) :] != y.shape:
        raise InvalidInputError(
            f"`y_hat` must have the labels' shape {y.shape}, with or without axes in front, "
            f"got {array.shape}."
        )
    return array


def _losses_of_instance(
    problem: Problem, y_hats: Array, y: Array, context: InstanceContext, instance: int
) -> Array:
    """Returns the decision losses of one instance, or names it in the error."""
    try:
        losses = decision_losses(problem, y_hats, y, context)
    except LodlError as error:  # says by itself what is wrong and what to do
        error.add_note(f"This was at instance {instance}.")
        raise
    except Exception as error:
        raise OracleError(
            f"The oracle failed at instance {instance}: {type(error).__name__}: {error}"
        ) from error
    if not np.isfinite(losses).all():
        value = losses[~np.isfinite(losses)][0]
        raise OracleError(
            f"The oracle failed at instance {instance}: the decision loss is {value}, expected a "
            "finite number."
        )
    return losses
