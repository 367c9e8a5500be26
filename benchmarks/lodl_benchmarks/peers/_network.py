"""Many models of one architecture, each with its own data, as one batched computation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from lodl._typing import Array
from lodl.training.torch import mlp


@dataclass(frozen=True)
class Architecture:
    """A linear model or a network of ReLU layers."""

    n_features: int  # numbers known about an instance, or about an item of it
    label_shape: tuple[int, ...]  # shape of a label
    n_items: int = 1  # number of items where features belong to items, otherwise 1
    hidden: tuple[int, ...] = ()  # widths of the hidden layers

    @classmethod
    def of(cls, x: Array, y: Array, hidden: tuple[int, ...]) -> "Architecture":
        """Return what fits features and labels."""
        n_items = x.shape[1] if x.ndim == 3 else 1
        return cls(x.shape[-1], y.shape[1:], n_items, hidden)

    def module(self, seed: int = 0) -> nn.Sequential:
        """Return one model, in double precision."""
        return mlp(
            self.n_features,
            self.label_shape,
            hidden=self.hidden,
            n_items=self.n_items,
            seed=seed,
        ).double()


class Networks:
    """Models that differ in their weights; `weights` are the weights of all models.

    Predictions are in the unit of the labels: outputs times a spread, plus a centre.

    Mean labels of each model's instances, `centre`, have shape (models, *label_shape), their
    deviation, `spread`, has shape (models,).
    """

    def __init__(
        self, architecture: Architecture, seeds: Sequence[int], centre: Array, spread: Array
    ) -> None:
        self.architecture = architecture
        states = [list(architecture.module(seed).parameters()) for seed in seeds]
        self.weights = [
            torch.stack([rows.detach() for rows in layer]).requires_grad_()
            for layer in zip(*states, strict=True)
        ]
        self._centre = torch.as_tensor(centre)[:, None]
        self._spread = torch.as_tensor(spread)

    def start_at_least_squares(self, model: int, x: Array, y: Array) -> None:
        """Set a linear model to the solution of least squares for its own instances."""
        weight, bias = self.weights
        outputs = (y - self._centre[model].numpy()) / float(self._spread[model])
        columns = x.reshape(-1, x.shape[-1])
        columns = np.concatenate([columns, np.ones((len(columns), 1))], axis=1)
        solution, *_ = np.linalg.lstsq(columns, outputs.reshape(len(columns), -1), rcond=None)
        with torch.no_grad():
            weight[model] = torch.as_tensor(solution[:-1].T)
            bias[model] = torch.as_tensor(solution[-1])

    def predict(self, x: Tensor, weights: Sequence[Tensor] | None = None) -> Tensor:
        """Return predictions, shape (models, batch, *label_shape).

        Features have shape (models, batch, p) or (models, batch, items, p).
        """
        n_models, n_batch = x.shape[:2]
        out = x.reshape(n_models, -1, x.shape[-1])
        weights = self.weights if weights is None else weights
        for layer in range(0, len(weights), 2):
            weight, bias = weights[layer], weights[layer + 1]
            out = torch.baddbmm(bias[:, None], out, weight.transpose(1, 2))
            if layer + 2 < len(weights):
                out = out.relu()
        out = out.reshape(n_models, n_batch, *self.architecture.label_shape)
        spread = self._spread.reshape(-1, *[1] * (out.ndim - 1))
        return self._centre + spread * out

    def state(self) -> list[Tensor]:
        """Return a copy of the weights."""
        return [rows.detach().clone() for rows in self.weights]

    def restore(self, state: Sequence[Tensor]) -> None:
        """Go back to a state."""
        with torch.no_grad():
            for rows, before in zip(self.weights, state, strict=True):
                rows.copy_(before)

    def predict_all(self, x: Array, weights: Sequence[Tensor] | None = None) -> Array:
        """Return what every model predicts for the same features."""
        with torch.no_grad():
            features = torch.as_tensor(x).expand(len(self._spread), *x.shape)
            return np.asarray(self.predict(features, weights).numpy())
