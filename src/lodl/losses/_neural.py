"""A small network of the error."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lodl._typing import Array
from lodl._validation import check_count
from lodl.errors import InvalidInputError
from lodl.losses._family import Family, Parameters, Tensor

_MAX_LAYERS = 100  # a file that claims more is damaged


@dataclass(frozen=True)
class NeuralLoss(Family):
    r"""A network with ReLU units and a ReLU output (paper, section 5: "NN").

        h_0 = d,   h_l = max(h_{l-1} W_l + b_l, 0),   f(d) = h_4

    The paper's network reads the flattened prediction; this one reads the error, which is the same
    network up to the first bias. With the default of 4 layers and 100 units,
    100 D + 20,401 parameters. Use it to learn how much of the cost the simpler families miss, with
    many samples. It is not convex, need not be zero nor smallest at the label, has no second
    derivative for tree models to use (the curvature is zero), and its gradient may vanish.
    Fitting it needs the extra "torch"; using it does not.

    Attributes:
        n_layers: Number of layers with weights, the output counted.
        n_units: Number of units of each hidden layer.
    """

    n_layers: int = 4
    n_units: int = 100
    is_convex = False

    def __post_init__(self) -> None:
        if check_count("n_layers", self.n_layers, minimum=2) > _MAX_LAYERS:
            raise InvalidInputError(
                f"`n_layers` must be at most {_MAX_LAYERS}, got {self.n_layers}."
            )
        check_count("n_units", self.n_units)

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        widths = [dim, *[self.n_units] * (self.n_layers - 1), 1]
        shapes: dict[str, tuple[int, ...]] = {}
        for layer, (n_in, n_out) in enumerate(pairwise(widths), start=1):
            shapes |= {f"W{layer}": (n_in, n_out), f"b{layer}": (n_out,)}
        return shapes

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        return self._pre_activations(phi, d)[-1][..., 0].clip(min=0)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        layers = self._pre_activations(phi, d)
        slope = (layers[-1] >= 0) + 0 * layers[-1]  # a mask in the dtype of the layer
        for layer in range(self.n_layers, 1, -1):
            slope = (layers[layer - 2] >= 0) * (slope @ phi[f"W{layer}"].swapaxes(-1, -2))
        return slope @ phi["W1"].swapaxes(-1, -2)

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        return 0 * d * phi["W1"][:, None, :, 0]  # zeros, a row per instance

    def squared_error(self, *, cost: float, scale: Array) -> dict[str, Array]:
        """Returns an absolute error, `cost * mean_i |d_i / scale_i|`, as ReLU units can have it.

        With fewer than 2 D units it is about that, along as many random directions.
        """
        dim = len(scale)
        phi = {name: np.zeros(shape) for name, shape in self.parameter_shapes(dim).items()}
        half = max(1, self.n_units // 2)
        directions = _directions(dim, half) * (cost / (dim * scale))[:, np.newaxis]
        phi["W1"][:, :half] = directions
        phi["W1"][:, half : 2 * half] = -directions[:, : self.n_units - half]
        for layer in range(2, self.n_layers):
            np.fill_diagonal(phi[f"W{layer}"], 1.0)
        phi[f"W{self.n_layers}"][:] = 1.0
        return phi

    def _pre_activations(self, phi: Parameters, d: Tensor) -> list[Tensor]:
        """Returns h_{l-1} W_l + b_l of each layer, the last of shape (n, m, 1)."""
        layers = [d @ phi["W1"] + phi["b1"][:, None]]
        for layer in range(2, self.n_layers + 1):
            hidden = layers[-1].clip(min=0)
            layers.append(hidden @ phi[f"W{layer}"] + phi[f"b{layer}"][:, None])
        return layers


def _directions(dim: int, count: int) -> Array:
    """Returns `count` columns whose absolute projections of d add up to about |d|_1."""
    if count >= dim:
        return np.eye(dim, count)
    gaussian = np.random.default_rng(0).standard_normal((dim, count))
    return gaussian * (math.sqrt(dim) / count)
