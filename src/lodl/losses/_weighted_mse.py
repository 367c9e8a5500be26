"""`WeightedMSE`: squared error with a weight per coordinate; and plain squared error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_labels
from lodl._typing import Array
from lodl.losses._family import Parameters, Tensor
from lodl.losses._learned_loss import FitErrors, LearnedLoss
from lodl.losses._least_squares import RidgeFamily
from lodl.oracle import Answers


@dataclass(frozen=True)
class WeightedMSE(RidgeFamily):
    r"""Squared error with a learned weight per coordinate (paper, section 4.2).

        f(d) = sum_i w_i d_i^2,   w_i >= 0

    D parameters. Use it if some coordinates matter more than others, and samples are few or labels
    long. It sees neither the sign of errors nor that errors in two coordinates add up or cancel.

    Example:
        >>> y, family = np.array([[3.0, 1.0]]), lodl.WeightedMSE()
        >>> loss = lodl.learn_loss(lodl.domains.TopK(1), y, family=family, n_samples=50)
        >>> loss.value([[2.0, 1.0]]) == loss.value([[4.0, 1.0]])  # the sign does not matter
        array([ True])
    """

    #: The least weight, as a share of the instance's mean fitted weight with errors in units of
    #: their size, so that no gradient vanishes. 0 is the formula as published.
    min_weight: float = 1e-3
    ridge: float = 1.0  #: Strength of the pull towards a plain squared error. 0 is as published.
    is_convex = True
    non_negative = ("w",)
    degrees: ClassVar[Mapping[str, int]] = {"w": 2}

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        return {"w": (dim,)}

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        return (phi["w"][:, None] * d * d).sum(-1)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        return 2 * phi["w"][:, None] * d

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        return 2 * phi["w"][:, None] + 0 * d

    def fit(self, answers: Answers) -> dict[str, Array]:
        return {"w": self.fit_weights(answers, np.square)[0]}


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
    """Return whether a loss is plain squared error, with one weight for all errors."""
    return isinstance(loss.family, WeightedMSE) and float(np.ptp(loss.phi["w"])) == 0.0
