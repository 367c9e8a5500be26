"""Squared error with a weight per coordinate."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lodl._typing import Array
from lodl.losses._family import Parameters, Tensor, squared_error_weights
from lodl.losses._ridge_family import RidgeFamily
from lodl.losses._standardised import mean_weight
from lodl.oracle import Answers


@dataclass(frozen=True)
class WeightedMSE(RidgeFamily):
    r"""Squared error with a learned weight per coordinate (paper, section 4.2).

        f(d) = sum_i w_i d_i^2,   w_i >= 0

    D parameters. Use it if some coordinates matter more than others, and samples are few or labels
    are long. It cannot tell over- from under-prediction, nor see that errors in two coordinates add
    up or cancel.

    Attributes:
        min_weight: The least weight, as a share of the mean fitted weight of the instance, errors
            measured in units of their size. It keeps a gradient where the samples saw no cost; 0 is
            the formula as published.
        ridge: How strongly the fit is pulled towards a plain squared error, which keeps it from
            fitting noise; 0 is the fit as published.

    Example:
        >>> y = np.array([[3.0, 1.0]])
        >>> loss = lodl.learn_loss(
        ...     lodl.domains.TopK(1), y, family=lodl.WeightedMSE(), n_samples=50
        ... )
        >>> loss.value([[2.0, 1.0]]) == loss.value([[4.0, 1.0]])  # it knows no direction
        array([ True])
    """

    min_weight: float = 1e-3
    ridge: float = 1.0
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
        """Solve the non-negative least squares problem, then lift the weights to the floor."""
        data = self.standardised(answers)
        squares = np.square(data.d)
        w = self.solve_weights(squares, data)
        w = np.maximum(w, self.min_weight * mean_weight(w, squares.mean(axis=0)))
        return {"w": data.weights(w)}

    def stand_in(self, *, cost: float, scale: Array) -> dict[str, Array]:
        return {"w": squared_error_weights(cost, scale)}
