"""The paper's scale of decision quality: random predictions score 0, the true labels 1."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl import Oracle, Problem
from lodl._arrays import check_labels
from lodl._typing import Array, Context
from lodl.errors import InvalidInputError
from lodl.evaluation import decision_loss

_N_RANDOM = 10  # random predictions per instance
_MIN_IN_RANGE = 0.01  # share of labels in [0, 1] below which uniform predictions say nothing

_logger = logging.getLogger(__name__)


def decision_quality(
    oracle: Problem | Oracle, y_hat: npt.ArrayLike, y: npt.ArrayLike, *, context: Context = None
) -> Array:
    """Return the negative of `lodl.evaluation.decision_loss`: higher is better for either sense."""
    return -decision_loss(oracle, y_hat, y, context=context)


@dataclass(frozen=True)
class QualityScale:
    """The mean decision quality of random predictions and of the true labels."""

    random: float
    optimal: float

    def normalise(self, quality: npt.ArrayLike) -> Array:
        """Return decision quality, averaged over the last axis, so that random is 0, optimal 1."""
        mean = np.mean(np.asarray(quality, dtype=np.float64), axis=-1)
        return np.asarray((mean - self.random) / (self.optimal - self.random))


def quality_scale(
    oracle: Problem | Oracle,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    y_random: npt.ArrayLike | None = None,
    random_state: int = 0,
) -> QualityScale:
    """Measure the decision quality of random predictions and of the true labels.

    Args:
        oracle: The problem whose solver decides, or an oracle.
        y: Labels, shape (n, *label_shape).
        context: One entry per instance, or None.
        y_random: Predictions that score 0, shape (m, n, *label_shape). Defaults to ten, uniform on
            [0, 1], as in the paper. If your labels are not in [0, 1], pass the labels of others:
            `np.random.default_rng(0).permutation(y)[np.newaxis]`.
        random_state: Random seed for them.
    """
    oracle = Oracle.of(oracle)
    instances = oracle.instances(y, context)
    labels = instances.y
    if y_random is None:
        if np.mean((labels >= 0) & (labels <= 1)) < _MIN_IN_RANGE:
            _logger.warning(
                "Random predictions are drawn from [0, 1], but hardly any label is in that range, "
                "so they are not comparable to a poor model. Pass `y_random`."
            )
        y_random = np.random.default_rng(random_state).random((_N_RANDOM, *labels.shape))
    points = check_labels(y_random, "y_random")
    if points.shape[1:] != labels.shape:
        raise InvalidInputError(
            "`y_random` must hold predictions for all instances, shape "
            f"(m, {', '.join(map(str, labels.shape))}), got {points.shape}."
        )
    both = np.concatenate([points, labels[np.newaxis]])
    quality = decision_quality(oracle, both, labels, context=instances.context).mean(axis=1)
    random, optimal = float(quality[:-1].mean()), float(quality[-1])
    if not optimal > random:
        raise InvalidInputError(
            f"Decision quality cannot be normalised: random predictions give {random:.6g}, the "
            f"true labels {optimal:.6g}. Check `sense`, and that labels change the decision."
        )
    return QualityScale(random=random, optimal=optimal)


def normalised_decision_quality(
    oracle: Problem | Oracle,
    y_hat: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    y_random: npt.ArrayLike | None = None,
    random_state: int = 0,
) -> float:
    """Return mean decision quality, scaled so that random predictions give 0 and labels give 1.

    It takes twelve solver calls per instance. For several models, and for the arguments, see
    `quality_scale`.
    """
    if np.ndim(y_hat) > np.ndim(y):
        advice = "To score several models, use `quality_scale`."
        expected = f"`y_hat` must have the labels' shape {np.shape(y)}"
        raise InvalidInputError(f"{expected}, got {np.shape(y_hat)}. {advice}")
    quality = decision_quality(oracle, y_hat, y, context=context)
    scale = quality_scale(oracle, y, context=context, y_random=y_random, random_state=random_state)
    return float(scale.normalise(quality))
