"""The published quadratic form whose factor switches with the signs of the error."""

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
class DirectedQuadratic(Family):
    r"""A quadratic form with a factor per pair of signs, as published (paper, section 4.2).

        f(d) = sum_j (sum_i L_ij^{s_i s_j} d_i)^2 + sum_i c_i d_i^2

    with s_i = + where d_i >= 0, else -.

    Column j is tied to coordinate j. 4 D * rank parameters, and the floor c. Here to repeat the
    paper's tables. **As published it is neither convex nor continuous**: the whole column j
    switches where d_j changes sign, even though d_j itself is zero there, so the value jumps. Use
    `ConvexDirectedQuadratic` for everything else. Where rank < D, only the signs of the first
    `rank` coordinates switch a column: it cannot see those of the others.

    Attributes:
        rank: Number of columns, at most D; None is D.
        min_weight: c as a share of the mean fitted weight of a coordinate, averaged over the signs,
            errors measured in units of their size. It keeps a gradient where the samples saw no
            cost; 0 is the formula as published.
    """

    rank: int | None = None
    min_weight: float = 1e-3
    is_convex = False

    def __post_init__(self) -> None:
        check_rank(self.rank)
        check_min_weight(self.min_weight)

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        """Returns the shapes; `L[a, b]` holds L^{s_i s_j}, a for s_i, b for s_j, + is 0, - is 1."""
        return {"L": (2, 2, dim, resolve_rank(self.rank, dim)), "floor": (dim,)}

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        u = _project(phi["L"], d)
        return (u * u).sum(-1) + (phi["floor"][:, None] * d * d).sum(-1)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        spread = _spread(phi["L"], d, _project(phi["L"], d))
        return 2 * (spread + phi["floor"][:, None] * d)

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        factor = phi["L"]
        ones = 0 * d[..., : factor.shape[-1]] + 1
        return 2 * (_spread(factor * factor, d, ones) + phi["floor"][:, None])

    def squared_error(self, *, cost: float, scale: Array) -> dict[str, Array]:
        return {
            "L": np.zeros(self.parameter_shapes(len(scale))["L"]),
            "floor": squared_error_weights(cost, scale),
        }


def _project(factor: Tensor, d: Tensor) -> Tensor:
    """Returns sum_i L_ij^{s_i s_j} d_i, shape (n, m, k)."""
    over, under = d.clip(min=0), d.clip(max=0)
    is_over = d[..., : factor.shape[-1]] >= 0
    if_over = over @ factor[:, 0, 0] + under @ factor[:, 1, 0]
    if_under = over @ factor[:, 0, 1] + under @ factor[:, 1, 1]
    return is_over * if_over + ~is_over * if_under


def _spread(factor: Tensor, d: Tensor, u: Tensor) -> Tensor:
    """Returns sum_j L_ij^{s_i s_j} u_j, shape (n, m, D)."""
    transposed = factor.swapaxes(-1, -2)
    is_over = d >= 0
    over, under = is_over[..., : u.shape[-1]] * u, ~is_over[..., : u.shape[-1]] * u
    if_over = over @ transposed[:, 0, 0] + under @ transposed[:, 0, 1]
    if_under = over @ transposed[:, 1, 0] + under @ transposed[:, 1, 1]
    return is_over * if_over + ~is_over * if_under
