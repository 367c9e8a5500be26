"""Squared error as a learned loss, so that 2-stage is trained like every other model."""

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_labels
from lodl.losses._fit_errors import FitErrors
from lodl.losses._learned_loss import LearnedLoss
from lodl.losses._weighted_mse import WeightedMSE


def squared_error_loss(y: npt.ArrayLike) -> LearnedLoss:
    """Return squared error as a `LearnedLoss`, in units of the labels' variance: the baseline.

        f(d) = 1/D sum_i d_i^2 / variance of all labels

    Args:
        y: Labels, shape (n, *label_shape).

    Example:
        >>> y = np.array([[3.0, 1.0], [0.0, 2.0]])
        >>> loss = lodl.losses.squared_error_loss(y)
        >>> loss.value(y), loss.value(y + 1) > 0
        (array([0., 0.]), array([ True,  True]))
    """
    labels = check_labels(y)
    n, dim = len(labels), labels[0].size
    variance = float(np.var(labels, axis=0).mean()) or 1.0
    weights = np.full((n, dim), 1.0 / (dim * variance))
    return LearnedLoss(WeightedMSE(), labels, {"w": weights}, FitErrors.empty(n), {})


def is_squared_error(loss: LearnedLoss) -> bool:
    """Return whether a loss is a plain squared error: one weight for all errors."""
    return isinstance(loss.family, WeightedMSE) and float(np.ptp(loss.phi["w"])) == 0.0
