"""What a model is trained to make small."""

from typing import Protocol

import numpy.typing as npt
import torch
from torch import Tensor, nn

from lodl.losses import mean_squared_error


class Objective(Protocol):
    """Per-instance losses of several models at once.

    `LearnedLossModule(loss, reduction="none")` is one; so is any function of this form.
    """

    def __call__(self, y_hat: Tensor, index: Tensor) -> Tensor:
        """Returns losses (models, n) of predictions (models, n, *label_shape)."""
        ...


class SquaredError(nn.Module):
    """The two-stage loss: mean squared error over the label's coordinates.

    Args:
        y: Labels, shape (n_instances, *label_shape).
    """

    y: Tensor

    def __init__(self, y: npt.ArrayLike) -> None:
        super().__init__()
        self.register_buffer("y", torch.as_tensor(y, dtype=torch.get_default_dtype()))

    def forward(self, y_hat: Tensor, index: Tensor) -> Tensor:
        """Returns losses of shape (..., n)."""
        losses: Tensor = mean_squared_error(y_hat, self.y[index])
        return losses
