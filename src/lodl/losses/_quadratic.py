"""A positive semidefinite quadratic form of the error."""

from dataclasses import dataclass

import numpy as np

from lodl._typing import Array
from lodl.losses._family import (
    Family,
    Parameters,
    Tensor,
    check_min_weight,
    check_rank,
    resolve_rank,
    squared_error_weights,
)


@dataclass(frozen=True)
class Quadratic(Family):
    r"""A learned positive semidefinite quadratic form (paper, section 4.2).

        f(d) = |L^T d|^2 + sum_i c_i d_i^2,   H = L L^T + diag(c)

    D * rank parameters, and the floor c. Use it when errors of several coordinates add up or
    cancel, and samples are many (at full rank a few times D (D + 1) / 2). It cannot tell over-
    from under-prediction.

    Attributes:
        rank: Number of columns of L; None is full rank, the only case whose best fit is certain.
        min_weight: c as a share of the mean fitted diagonal of H, errors measured in units of their
            size. It keeps a gradient where the samples saw no cost; 0 is the formula as published.
    """

    rank: int | None = None
    min_weight: float = 1e-3
    is_convex = True

    def __post_init__(self) -> None:
        check_rank(self.rank)
        check_min_weight(self.min_weight)

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        return {"L": (dim, resolve_rank(self.rank, dim)), "floor": (dim,)}

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        u = d @ phi["L"]
        return (u * u).sum(-1) + (phi["floor"][:, None] * d * d).sum(-1)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        u = d @ phi["L"]
        return 2 * (u @ phi["L"].swapaxes(-1, -2) + phi["floor"][:, None] * d)

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        diagonal = (phi["L"] * phi["L"]).sum(-1) + phi["floor"]
        return 2 * diagonal[:, None] + 0 * d

    def squared_error(self, *, cost: float, scale: Array) -> dict[str, Array]:
        return {
            "L": np.zeros(self.parameter_shapes(len(scale))["L"]),
            "floor": squared_error_weights(cost, scale),
        }
