"""Fit of the network, by Adam in torch, several instances at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lodl._threads import one_torch_thread
from lodl._typing import Array
from lodl._validation import require
from lodl.fitting._standardised import Standardised
from lodl.losses import NeuralLoss

if TYPE_CHECKING:
    import torch

_STEPS = 100
_BATCH = 256
_LEARNING_RATE = 5e-3


def fit_neural(family: NeuralLoss, d: Array, regret: Array) -> dict[str, Array]:
    """Fits one instance; `fit_neural_batch` does several for little more."""
    return fit_neural_batch(family, [(d, regret)])[0]


def fit_neural_batch(
    family: NeuralLoss, samples: Sequence[tuple[Array, Array]]
) -> list[dict[str, Array]]:
    """Takes Adam steps on the mean squared error, for all instances together.

    Every instance starts from the same weights and sees its samples in the same order, drawn from
    a fixed seed, so a result depends neither on chance nor on the other instances.
    """
    if not samples:
        return []
    data = [Standardised.of(d, regret) for d, regret in samples]
    torch = require("torch", "torch")
    with one_torch_thread():
        phi = _initial(torch, family, data)
        _train(torch, family, phi, data)
    arrays = {name: value.detach().numpy().astype(np.float64) for name, value in phi.items()}
    return [_parameters(family, part, arrays, i) for i, part in enumerate(data)]


def _initial(torch: Any, family: NeuralLoss, data: list[Standardised]) -> dict[str, torch.Tensor]:
    """Returns He's weights, and an output that starts at the mean regret: a ReLU that is on."""
    generator = torch.Generator().manual_seed(0)
    phi = {}
    for name, shape in family.parameter_shapes(data[0].d.shape[1]).items():
        start = torch.zeros(shape)
        if name.startswith("W"):
            start = torch.randn(shape, generator=generator) * (2 / shape[0]) ** 0.5
        phi[name] = start.repeat(len(data), *[1] * len(shape))
    phi[f"W{family.n_layers}"] *= 0.1
    phi[f"b{family.n_layers}"] += torch.tensor([[part.typical_cost] for part in data])
    return {name: value.requires_grad_() for name, value in phi.items()}


def _train(
    torch: Any, family: NeuralLoss, phi: dict[str, torch.Tensor], data: list[Standardised]
) -> None:
    d = [torch.tensor(part.d, dtype=torch.float32) for part in data]
    regret = [torch.tensor(part.regret, dtype=torch.float32) for part in data]
    generator = torch.Generator().manual_seed(1)
    adam = torch.optim.Adam(phi.values(), lr=_LEARNING_RATE)
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


def _parameters(
    family: NeuralLoss, data: Standardised, arrays: dict[str, Array], row: int
) -> dict[str, Array]:
    phi = {name: value[row] for name, value in arrays.items()}
    last = family.n_layers
    return {
        **phi,
        "W1": phi["W1"] / data.d_scale[:, np.newaxis],
        f"W{last}": phi[f"W{last}"] * data.regret_scale,
        f"b{last}": phi[f"b{last}"] * data.regret_scale,
    }
