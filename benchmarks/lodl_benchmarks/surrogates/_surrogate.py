"""Differentiable stand-ins for a solver, and their decision loss as a training loss."""

from abc import ABC, abstractmethod
from typing import Any

import torch

from lodl._typing import Sense
from lodl.errors import InvalidInputError


class Surrogate(ABC):
    """A relaxed decision that is differentiable in the prediction, and its worth.

    A member is a small immutable record of settings. Predictions may carry batch axes before the
    instance (many initialisations trained at once); labels and context have the instance first:

        y_hat: (*batch, n, *label_shape)   z: (*batch, n, M)   y: (n, *label_shape)

    The result for one instance depends on no other. Gradients are first-order only: asking for a
    second derivative is an error.
    """

    sense: Sense  # "min" if the objective is a cost, "max" if it is a gain

    @abstractmethod
    def __call__(self, y_hat: torch.Tensor, context: Any = None) -> torch.Tensor:
        """Return the relaxed decision `z` that is best if `y_hat` were the truth."""

    @abstractmethod
    def objective(self, z: torch.Tensor, y: torch.Tensor, context: Any = None) -> torch.Tensor:
        """Return what the relaxed decisions are worth under the label, shape (*batch, n)."""


class SurrogateLoss(torch.nn.Module):
    r"""Decision loss of the relaxed decision, with squared error as a regulariser.

        loss(y_hat, y) = s * objective(z(y_hat), y) + mse_weight * MSE(y_hat, y)

    with s = 1 for "min" and -1 for "max", so lower is better. The decision is taken under the
    prediction and scored under the true label.
    """

    def __init__(self, surrogate: Surrogate, *, mse_weight: float = 1.0) -> None:
        super().__init__()
        if not mse_weight >= 0:
            raise InvalidInputError(f"`mse_weight` must be at least 0, got {mse_weight!r}.")
        self.surrogate = surrogate
        self.mse_weight = mse_weight

    def forward(self, y_hat: torch.Tensor, y: torch.Tensor, context: Any = None) -> torch.Tensor:
        """Return the loss of each instance.

        `y_hat` has shape (*batch, n, *label_shape), `y` has shape (n, *label_shape), losses have
        shape (*batch, n).
        """
        if y_hat.shape[y_hat.ndim - y.ndim :] != y.shape:
            raise InvalidInputError(
                f"`y_hat` must have shape (*batch, *y.shape) with y.shape {tuple(y.shape)}, "
                f"got {tuple(y_hat.shape)}."
            )
        sign = 1 if self.surrogate.sense == "min" else -1
        z = self.surrogate(y_hat, context)
        mse: torch.Tensor = mean_squared_error(y_hat, y)
        return sign * self.surrogate.objective(z, y, context) + self.mse_weight * mse


def mean_squared_error(y_hat: Any, y: Any) -> Any:
    """Return the mean squared error of each instance, for NumPy arrays and torch tensors.

    Predictions have shape (*batch, n, *label_shape), the result has shape (*batch, n).
    """
    return ((y_hat - y) ** 2).mean(tuple(range(1 - y.ndim, 0)))
