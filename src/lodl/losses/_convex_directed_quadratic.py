"""Squared hinges along learned directions: directed, correlated, and convex."""

from dataclasses import dataclass

import numpy as np

from lodl._typing import Array
from lodl.losses._directed_weighted_mse import directed_weights
from lodl.losses._family import (
    Family,
    Parameters,
    Tensor,
    check_min_weight,
    check_rank,
    squared_error_weights,
)


@dataclass(frozen=True)
class ConvexDirectedQuadratic(Family):
    r"""Squared hinges along learned directions plus a directed diagonal.

        f(d) = sum_r max(a_r . d, 0)^2 + sum_i [ w+_i max(d_i, 0)^2 + w-_i max(-d_i, 0)^2 ],  w >= 0

    D * rank + 2 D parameters. Convex, smooth and zero at the label whatever the parameters. Use it
    when direction matters *and* errors of several coordinates add up or cancel. It contains
    `WeightedMSE` and `DirectedWeightedMSE` (no hinge), and `Quadratic` (a hinge along each column
    of L and one against it, so rank here is twice the rank there). It cannot see costs that do not
    grow with the square of the error, such as those that level off.

    Attributes:
        rank: Number of hinges; None is 2 D, which holds every `Quadratic`. A hinge more is a chance
            to overfit: the held-out errors tell.
        min_weight: The least weight of the diagonal, as a share of the mean fitted weight of a
            coordinate, hinges included (half of each, being on at half of the errors), errors
            measured in units of their size.
    """

    rank: int | None = 4
    min_weight: float = 1e-3
    is_convex = True

    def __post_init__(self) -> None:
        check_rank(self.rank)
        check_min_weight(self.min_weight)

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        n_hinges = 2 * dim if self.rank is None else self.rank
        return {"a": (n_hinges, dim), "w_plus": (dim,), "w_minus": (dim,)}

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        hinge = (d @ phi["a"].swapaxes(-1, -2)).clip(min=0)
        return (hinge * hinge).sum(-1) + (directed_weights(phi, d) * d * d).sum(-1)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        hinge = (d @ phi["a"].swapaxes(-1, -2)).clip(min=0)
        return 2 * (hinge @ phi["a"] + directed_weights(phi, d) * d)

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        u = d @ phi["a"].swapaxes(-1, -2)
        is_on = (u >= 0) + 0 * u  # a mask in the dtype of u
        return 2 * (is_on @ (phi["a"] * phi["a"]) + directed_weights(phi, d))

    def squared_error(self, *, cost: float, scale: Array) -> dict[str, Array]:
        w = squared_error_weights(cost, scale)
        hinges = np.zeros(self.parameter_shapes(len(scale))["a"])
        return {"a": hinges, "w_plus": w, "w_minus": w}
