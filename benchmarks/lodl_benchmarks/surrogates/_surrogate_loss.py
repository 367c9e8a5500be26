"""Decision-focused learning: the decision loss of a surrogate as a training loss."""

from typing import Any

import torch

from lodl.errors import InvalidInputError
from lodl.losses import mean_squared_error
from lodl_benchmarks.surrogates._surrogate import Surrogate


class SurrogateLoss(torch.nn.Module):
    r"""Decision loss of the relaxed decision, with squared error as a regulariser.

        loss(y_hat, y) = s * objective(z(y_hat), y) + mse_weight * MSE(y_hat, y)

    with s = 1 for "min" and -1 for "max", so lower is better. The decision is taken under the
    prediction and scored under the true label.

    Args:
        surrogate: The differentiable stand-in for the solver.
        mse_weight: Weight of the squared error. The authors use 1.
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
