"""`NeuralLoss`: a small network of the error, fitted by Adam in torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lodl._arrays import check_count, require
from lodl._threads import one_torch_thread
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses._family import Family, Parameters, Tensor
from lodl.losses._least_squares import Standardised
from lodl.oracle import Answers

_STEPS = 100
_BATCH = 256
_LEARNING_RATE = 5e-3
_MAX_LAYERS = 100  # a file with more is damaged


@dataclass(frozen=True)
class NeuralLoss(Family):
    r"""A network with ReLU units and a ReLU output (paper, section 5: "NN").

        h_0 = d,   h_l = max(h_{l-1} W_l + b_l, 0),   f(d) = h_4

    The paper's network reads the prediction, this one the error: the same up to the first bias. By
    default it has 100 D + 20,401 parameters. Use it, with many samples, to find out how much of the
    cost the simpler families miss. It is not convex, need not be smallest at the label, and its
    gradient may vanish. Fitting it needs the extra "torch"; using it does not.

    Example:
        >>> y = np.array([[3.0, 1.0]])
        >>> family = lodl.NeuralLoss(n_layers=2, n_units=4)
        >>> loss = lodl.learn_loss(lodl.domains.TopK(1), y, family=family, n_samples=20)
        >>> loss.value(y).shape
        (1,)
    """

    n_layers: int = 4  #: Number of layers with weights, output included.
    n_units: int = 100  #: Number of units of each hidden layer.
    is_convex = False

    def __post_init__(self) -> None:
        check_count("n_units", self.n_units)
        if check_count("n_layers", self.n_layers, minimum=2) > _MAX_LAYERS:
            raise InvalidInputError(f"`n_layers` must be at most {_MAX_LAYERS}.")

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

    def fit(self, answers: Answers) -> dict[str, Array]:
        return self.fit_many([answers])[0]

    def fit_many(self, instances: Sequence[Answers]) -> list[dict[str, Array]]:
        """Take Adam steps for all instances together. A fit does not depend on the others."""
        if not instances:
            return []
        data = [Standardised.of(answers) for answers in instances]
        torch = require("torch", "torch")
        with one_torch_thread():
            phi = _train(torch, self, data)
        arrays = {name: rows.detach().numpy().astype(np.float64) for name, rows in phi.items()}
        for i, part in enumerate(data):
            arrays["W1"][i] /= part.d_scale[:, np.newaxis]
            arrays[f"W{self.n_layers}"][i] *= part.regret_scale
            arrays[f"b{self.n_layers}"][i] *= part.regret_scale
        return [{name: rows[i] for name, rows in arrays.items()} for i in range(len(data))]

    def fallback(self, *, cost: float, scale: Array) -> dict[str, Array]:
        """Return an absolute error, `cost * mean_i |d_i / scale_i|`, if there are 2 D units."""
        dim = len(scale)
        phi = {name: np.zeros(shape) for name, shape in self.parameter_shapes(dim).items()}
        half = max(1, self.n_units // 2)
        directions = np.eye(dim, half)
        if half < dim:  # columns for which the absolute projections of d add up to about |d|_1
            gaussian = np.random.default_rng(0).standard_normal((dim, half))
            directions = gaussian * (math.sqrt(dim) / half)
        directions = directions * (cost / (dim * scale))[:, np.newaxis]
        phi["W1"][:, :half] = directions
        phi["W1"][:, half : 2 * half] = -directions[:, : self.n_units - half]
        for layer in range(2, self.n_layers):
            np.fill_diagonal(phi[f"W{layer}"], 1.0)
        phi[f"W{self.n_layers}"][:] = 1.0
        return phi

    def _pre_activations(self, phi: Parameters, d: Tensor) -> list[Tensor]:
        """Return h_{l-1} W_l + b_l of each layer, the last of shape (n, m, 1)."""
        layers = [d @ phi["W1"] + phi["b1"][:, None]]
        for layer in range(2, self.n_layers + 1):
            hidden = layers[-1].clip(min=0)
            layers.append(hidden @ phi[f"W{layer}"] + phi[f"b{layer}"][:, None])
        return layers


def _train(torch: Any, family: NeuralLoss, data: list[Standardised]) -> dict[str, Tensor]:
    """Return trained parameters of all instances, from one draw of He's weights."""
    generator = torch.Generator().manual_seed(0)
    phi = {}
    for name, shape in family.parameter_shapes(data[0].d.shape[1]).items():
        start = torch.zeros(shape)
        if name.startswith("W"):
            start = torch.randn(shape, generator=generator) * (2 / shape[0]) ** 0.5
        phi[name] = start.repeat(len(data), *[1] * len(shape))
    phi[f"W{family.n_layers}"] *= 0.1
    # The output bias starts at the mean regret, so that its ReLU is on.
    phi[f"b{family.n_layers}"] += torch.tensor([[part.typical_cost] for part in data])
    d = [torch.tensor(part.d, dtype=torch.float32) for part in data]
    regret = [torch.tensor(part.regret, dtype=torch.float32) for part in data]
    generator = torch.Generator().manual_seed(1)
    adam = torch.optim.Adam([rows.requires_grad_() for rows in phi.values()], lr=_LEARNING_RATE)
    decay = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.0, total_iters=_STEPS)
    for _ in range(_STEPS):
        place = torch.rand(_BATCH, generator=generator, dtype=torch.float64)
        rows = [(place * len(part)).long() for part in d]
        errors = torch.stack([part[row] for part, row in zip(d, rows, strict=True)])
        target = torch.stack([part[row] for part, row in zip(regret, rows, strict=True)])
        adam.zero_grad()
        torch.square(family.value(phi, errors) - target).mean(dim=1).sum().backward()
        adam.step()
        decay.step()
    return phi
