"""The interface of a differentiable stand-in for a solver."""

from abc import ABC, abstractmethod
from typing import Any

import torch

from lodl._typing import Sense


class Surrogate(ABC):
    """A relaxed decision that is differentiable in the prediction, and its worth.

    A member is a small immutable record of settings. Predictions may carry batch axes before the
    instance (many initialisations trained at once); labels and context have the instance first:

        y_hat: (*batch, n, *label_shape)   z: (*batch, n, M)   y: (n, *label_shape)

    The result for one instance depends on no other. Gradients are first-order only: asking for a
    second derivative is an error.

    Attributes:
        sense: "min" if the objective is a cost, "max" if it is a gain.
    """

    sense: Sense

    @abstractmethod
    def __call__(self, y_hat: torch.Tensor, context: Any = None) -> torch.Tensor:
        """Return the relaxed decision `z` that is best if `y_hat` were the truth."""

    @abstractmethod
    def objective(self, z: torch.Tensor, y: torch.Tensor, context: Any = None) -> torch.Tensor:
        """Return what the relaxed decisions are worth under the label, shape (*batch, n)."""
