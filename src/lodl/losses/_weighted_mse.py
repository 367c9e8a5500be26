"""Squared error with a weight per coordinate."""

from dataclasses import dataclass

from lodl.losses._family import Family, Parameters, Tensor


@dataclass(frozen=True)
class WeightedMSE(Family):
    r"""Squared error with a learned weight per coordinate (paper, section 4.2).

        f(d) = sum_i w_i d_i^2,   w_i >= 0

    D parameters. Use it when some coordinates matter more than others, when samples are few, or
    labels are long. It cannot tell over- from under-prediction, nor see that errors of two
    coordinates add up or cancel.

    Attributes:
        min_weight: The least weight, as a share of the mean fitted weight of the instance.
    """

    min_weight: float = 1e-3
    is_convex = True

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        return {"w": (dim,)}

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        return (phi["w"][:, None] * d * d).sum(-1)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        return 2 * phi["w"][:, None] * d

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        return 2 * phi["w"][:, None] + 0 * d
