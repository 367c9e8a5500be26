"""Squared errors: `WeightedMSE`, `DirectedWeightedMSE`, and the baseline's plain squared error."""

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


@dataclass(frozen=True)
class DirectedWeightedMSE(RidgeFamily):
    r"""Squared error with separate weights for over- and under-prediction (paper, section 4.2).

        f(d) = sum_i [ w+_i max(d_i, 0)^2 + w-_i max(-d_i, 0)^2 ],   w >= 0

    2 D parameters. Use it if it matters on which side of the label a prediction falls, as in most
    choices among alternatives. Of the families fitted to regrets, try this one first. It cannot
    see that errors in two coordinates add up or cancel.

    Example:
        >>> y, family = np.array([[3.0, 1.0]]), lodl.DirectedWeightedMSE()
        >>> loss = lodl.learn_loss(lodl.domains.TopK(1), y, family=family, n_samples=50)
        >>> loss.value([[4.0, 0.0]]) < loss.value([[2.0, 2.0]])  # the first item is better anyway
        array([ True])
    """

    min_weight: float = 1e-3  #: The least weight (see `WeightedMSE`).
    ridge: float = 1.0  #: Strength of the pull towards a plain squared error. 0 is as published.
    is_convex = True
    non_negative = ("w_plus", "w_minus")
    degrees: ClassVar[Mapping[str, int]] = {"w_plus": 2, "w_minus": 2}

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        return {"w_plus": (dim,), "w_minus": (dim,)}

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        return (directed_weights(phi, d) * d * d).sum(-1)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        return 2 * directed_weights(phi, d) * d

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        return 2 * directed_weights(phi, d)

    def fit(self, answers: Answers) -> dict[str, Array]:
        w_plus, w_minus = self.fit_weights(answers, directed_squares)
        return {"w_plus": w_plus, "w_minus": w_minus}


def directed_weights(phi: Parameters, d: Tensor, name: str = "w") -> Tensor:
    """Return the weight of each error, `w_plus` if it is not negative, shape (n, m, D)."""
    is_over = d >= 0
    return is_over * phi[f"{name}_plus"][:, None] + ~is_over * phi[f"{name}_minus"][:, None]


def directed_squares(d: Array) -> Array:
    """Return the squares of over-predictions, then of under-predictions, shape (K, 2 D)."""
    return np.asarray(np.square(np.hstack([np.maximum(d, 0.0), np.minimum(d, 0.0)])))


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
