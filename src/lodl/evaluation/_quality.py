"""Decision quality on a scale from random predictions to true labels."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_labels, check_predictions
from lodl._typing import Array, Context
from lodl.errors import InvalidInputError
from lodl.evaluation._baselines import random_predictions
from lodl.evaluation._decision_loss import decision_quality
from lodl.oracle import Oracle
from lodl.problems import Problem
from lodl.problems._problem import check_instances, check_predicted

_FEW = 0.01  # share of the labels' values

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class QualityScale:
    """The mean decision quality of random predictions and of the true labels."""

    random: float
    optimal: float

    def normalise(self, quality: npt.ArrayLike) -> Array:
        """Return mean decision quality on a scale where random is 0 and optimal is 1.

        Args:
            quality: Decision quality with the instance on the last axis, which is averaged.
        """
        mean = np.mean(np.asarray(quality, dtype=np.float64), axis=-1)
        return np.asarray((mean - self.random) / (self.optimal - self.random))


def quality_scale(
    problem: Problem | Oracle,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    y_random: npt.ArrayLike | None = None,
    seed: int = 0,
    n_random: int = 10,
) -> QualityScale:
    """Measure the decision quality of random predictions and of the true labels.

    Args:
        problem: The problem whose solver decides.
        y: Labels, shape (n, *label_shape).
        context: One entry per instance, or None.
        y_random: Predictions that score 0, shape (m, n, *label_shape). None draws them uniformly
            from [0, 1] as in the paper. If your labels are not in [0, 1], give the labels of other
            instances: `np.random.default_rng(0).permutation(y)[np.newaxis]`.
        seed: Random seed for the random predictions.
        n_random: Number of random predictions per instance; more give a steadier zero.

    Example:
        >>> y = np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> scale = lodl.evaluation.quality_scale(lodl.domains.TopK(1), y)
        >>> round(scale.optimal, 2)
        0.85
        >>> gained = lodl.evaluation.decision_quality(lodl.domains.TopK(1), y, y)
        >>> float(scale.normalise(gained))
        1.0
    """
    oracle = Oracle.of(problem)
    y, context = check_instances(oracle.problem, y, context)
    if y_random is None:
        if np.mean((y >= 0) & (y <= 1)) < _FEW:
            _logger.warning(
                "Random predictions are drawn from [0, 1], but hardly any label is in that range, "
                "so they are not comparable to a poor model. Give `y_random`."
            )
        y_random = random_predictions((check_count("n_random", n_random), *y.shape), seed)
    both = np.concatenate([_check_random(y_random, y), y[np.newaxis]])
    quality = decision_quality(problem, both, y, context=context).mean(axis=1)
    random, optimal = float(quality[:-1].mean()), float(quality[-1])
    if not optimal > random:
        raise InvalidInputError(
            f"Decision quality cannot be normalised: random predictions give {random:.6g}, the "
            f"true labels {optimal:.6g}. Check `sense`, and that labels change the decision."
        )
    return QualityScale(random=random, optimal=optimal)


def normalised_decision_quality(
    problem: Problem | Oracle,
    y_hat: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    y_random: npt.ArrayLike | None = None,
    seed: int = 0,
) -> float:
    """Return mean decision quality, scaled so that random predictions give 0 and labels give 1.

    Random predictions are uniform on [0, 1], as in the paper. If your labels are not in [0, 1],
    they say little about a poor model: give `y_random`. Ten are drawn per instance, so this takes
    twelve solver calls per instance. To score several models on the same labels, call
    `quality_scale` once and use its `normalise`.

    Args:
        problem: The problem whose solver decides.
        y_hat: Predictions of one model, shape (n, *label_shape).
        y: Labels, of the same shape.
        context: One entry per instance, or None.
        y_random: Predictions that score 0, see `quality_scale`.
        seed: Random seed for the random predictions.

    Example:
        >>> y = np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> lodl.evaluation.normalised_decision_quality(lodl.domains.TopK(1), y, y)
        1.0
    """
    oracle = Oracle.of(problem)
    y_hat, y, context = check_predicted(oracle.problem, y_hat, y, context)
    check_predictions(y_hat, y)  # of one model
    scale = quality_scale(problem, y, context=context, y_random=y_random, seed=seed)
    quality = decision_quality(problem, y_hat, y, context=context)
    return float(scale.normalise(quality))


def _check_random(y_random: npt.ArrayLike, y: Array) -> Array:
    array = check_labels(y_random, "y_random")
    if array.shape[1:] != y.shape:
        raise InvalidInputError(
            "`y_random` must hold predictions for all instances, shape "
            f"(m, {', '.join(map(str, y.shape))}), got {array.shape}."
        )
    return array
