"""Squared error with a weight per coordinate and direction."""

from dataclasses import dataclass

from lodl._typing import Array
from lodl.losses._family import Family, Parameters, Tensor, check_min_weight, squared_error_weights


@dataclass(frozen=True)
class DirectedWeightedMSE(Family):
    r"""Squared error that weighs over- and under-prediction apart (paper, section 4.2).

        f(d) = sum_i [ w+_i max(d_i, 0)^2 + w-_i max(-d_i, 0)^2 ],   w >= 0

    2 D parameters. Use it when it matters on which side of the label a prediction falls, as in most
    choices among alternatives; the first family to try. It cannot see that errors of two
    coordinates add up or cancel.

    Attributes:
        min_weight: The least weight, as a share of the mean fitted weight of the instance, errors
            measured in units of their size. It keeps a gradient where the samples saw no cost; 0 is
            the formula as published.
    """

    min_weight: float = 1e-3
    is_convex = True

    def __post_init__(self) -> None:
        check_min_weight(self.min_weight)

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        return {"w_plus": (dim,), "w_minus": (dim,)}

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        return (directed_weights(phi, d) * d * d).sum(-1)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        return 2 * directed_weights(phi, d) * d

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        return 2 * directed_weights(phi, d)

    def squared_error(self, *, cost: float, scale: Array) -> dict[str, Array]:
        w = squared_error_weights(cost, scale)
        return {"w_plus": w, "w_minus": w}


def directed_weights(phi: Parameters, d: Tensor) -> Tensor:
    """Returns the weight in force at each error, `w_plus` where it is not negative: (n, m, D)."""
    is_over = d >= 0
    return is_over * phi["w_plus"][:, None] + ~is_over * phi["w_minus"][:, None]
