"""A positive semidefinite quadratic form of the error."""

from dataclasses import dataclass

import numpy as np

from lodl.losses._family import (
    Family,
    Parameters,
    Tensor,
    check_min_weight,
    check_rank,
    resolve_rank,
)
from lodl.typing import Array


@dataclass(frozen=True)
class Quadratic(Family):
    r"""A learned positive semidefinite quadratic form (paper, section 4.2).

        f(d) = |L^T d|^2 + c |d|^2,   H = L L^T + c I

    D * rank parameters, and the floor c. Use it when errors of several coordinates add up or
    cancel, and samples are many (at full rank a few times D (D + 1) / 2). It cannot tell over-
    from under-prediction.

    Attributes:
        rank: Number of columns of L; None is full rank, the only case whose best fit is certain.
        min_weight: c as a share of the mean of the fitted diagonal of H. It keeps a gradient
            where the samples saw no cost; 0 is the formula as published.
    """

    rank: int | None = None
    min_weight: float = 1e-3
    is_convex = True

    def __post_init__(self) -> None:
        check_rank(self.rank)
        check_min_weight(self.min_weight)

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        return {"L": (dim, resolve_rank(self.rank, dim)), "floor": ()}

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        u = d @ phi["L"]
        return (u * u).sum(-1) + phi["floor"][:, None] * (d * d).sum(-1)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        u = d @ phi["L"]
        return 2 * (u @ phi["L"].swapaxes(-1, -2) + phi["floor"][:, None, None] * d)

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        diagonal = (phi["L"] * phi["L"]).sum(-1) + phi["floor"][:, None]
        return 2 * diagonal[:, None] + 0 * d

    def squared_error(self, dim: int, *, cost: float, scale: float) -> dict[str, Array]:
        return {
            "L": np.zeros(self.parameter_shapes(dim)["L"]),
            "floor": np.array(cost / (dim * scale**2)),
        }
