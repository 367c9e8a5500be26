"""A learned loss as a PyTorch module."""

from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss

Reduction = Literal["mean", "sum", "none"]


class LearnedLossModule(nn.Module):
    """The learned losses of many instances: `criterion(y_hat, index)`.

    Labels and parameters are buffers: they move with `.to(device)`, follow `.double()`, and stand
    in the state dict; there is nothing to train. The family's own formula is computed, so autograd
    gives the gradient, and `torch.compile` and `torch.func` see plain tensor operations.

    Args:
        loss: The learned loss.
        reduction: "mean" or "sum" over all losses, or "none".
    """

    y: Tensor

    def __init__(self, loss: LearnedLoss, reduction: Reduction = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise InvalidInputError(
                f'`reduction` must be "mean", "sum" or "none", got {reduction!r}.'
            )
        self.family = loss.family
        self.label_shape = loss.label_shape
        self.reduction = reduction
        self.register_buffer("y", _float_tensor(loss.y).flatten(1))
        for name, rows in loss.phi.items():
            self.register_buffer(f"phi_{name}", _float_tensor(rows))
        self._names = tuple(loss.phi)

    def forward(self, y_hat: Tensor, index: npt.ArrayLike | Tensor) -> Tensor:
        """Returns the losses of predictions.

        Args:
            y_hat: Predictions, shape (n, *label_shape); axes in front, as in
                (models, n, *label_shape), are several predictions for the same instances.
            index: Which instances the predictions are for, shape (n,): a tensor, an array or a
                list of whole numbers.

        Returns:
            A scalar, or losses of shape (n,) or (..., n) where reduction is "none".
        """
        chosen = self._check_index(index)
        in_front = y_hat.shape[: y_hat.ndim - len(self.label_shape)]
        if in_front[-1:] != chosen.shape or y_hat.shape[len(in_front) :] != self.label_shape:
            raise InvalidInputError(
                f"`y_hat` must have shape (n, *{tuple(self.label_shape)}) and `index` shape (n,), "
                f"got {tuple(y_hat.shape)} and {tuple(chosen.shape)}."
            )
        d = y_hat.reshape(-1, len(chosen), self.y.shape[1]) - self._rows("y", chosen)
        phi = {name: self._rows(f"phi_{name}", chosen) for name in self._names}
        losses: Tensor = self.family.value(phi, d.transpose(0, 1)).T.reshape(in_front)
        return losses if self.reduction == "none" else getattr(losses, self.reduction)()

    def _check_index(self, index: npt.ArrayLike | Tensor) -> Tensor:
        chosen = torch.as_tensor(index, device=self.y.device)
        if chosen.ndim != 1 or chosen.dtype.is_floating_point or chosen.dtype == torch.bool:
            raise InvalidInputError(
                "`index` must be a list of whole numbers, got "
                f"{chosen.dtype} of shape {tuple(chosen.shape)}."
            )
        return chosen.long()

    def _rows(self, name: str, index: Tensor) -> Tensor:
        """Returns rows of a buffer.

        `index_select` refuses negative numbers itself, unlike brackets. A look at the least and the
        greatest would make a GPU wait, and break graphs and `vmap`.
        """
        rows: Tensor = getattr(self, name)
        try:
            return rows.index_select(0, index)
        except IndexError as error:
            raise InvalidInputError(
                f"`index` must be from 0 to {len(rows) - 1}, "
                f"got {index.min().item()} to {index.max().item()}."
            ) from error

    def extra_repr(self) -> str:
        """Says what the buffers are of."""
        return f"{self.family}, n_instances={len(self.y)}, label_shape={tuple(self.label_shape)}"


def _float_tensor(rows: object) -> Tensor:
    return torch.as_tensor(np.array(rows), dtype=torch.get_default_dtype())
