"""A learned loss as a PyTorch module."""

from typing import Literal

import numpy.typing as npt
import torch
from torch import Tensor, nn

from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss
from lodl.training._index import check_index, check_prediction_shape, rows_at

Reduction = Literal["mean", "sum", "none"]


class LearnedLossModule(nn.Module):
    """The learned losses of many instances: `criterion(y_hat, index)`.

    Labels and parameters are buffers: they move with `.to(device)` and stand in the state dict;
    there is nothing to train. The family's own formula is computed, so autograd
    gives the gradient, and `torch.compile` and `torch.func` see plain tensor operations.

    Args:
        loss: The learned loss.
        reduction: "mean" or "sum" over all losses, or "none".
        dtype: The type of labels and parameters; torch's default if None. Give torch.float64 for a
            model in double precision: `.double()` later does not bring digits back.

    Example:
        >>> import torch
        >>> from lodl.training.torch import LearnedLossModule
        >>> y = np.array([[3.0, 1.0], [0.0, 2.0]])
        >>> criterion = LearnedLossModule(lodl.learn_loss(lodl.domains.TopK(1), y))
        >>> y_hat = torch.tensor([[1.0, 0.0]], requires_grad=True)
        >>> criterion(y_hat, index=[1]).backward()
        >>> y_hat.grad.shape
        torch.Size([1, 2])
    """

    y: Tensor

    def __init__(
        self,
        loss: LearnedLoss,
        reduction: Reduction = "mean",
        *,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise InvalidInputError(
                f'`reduction` must be "mean", "sum" or "none", got {reduction!r}.'
            )
        self.family = loss.family
        self.label_shape = loss.label_shape
        self.reduction = reduction
        self.register_buffer("y", _float_tensor(loss.y, dtype).flatten(1))
        for name, rows in loss.phi.items():
            self.register_buffer(f"phi_{name}", _float_tensor(rows, dtype))
        self._names = tuple(loss.phi)

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return len(self.y)

    def forward(self, y_hat: Tensor, index: npt.ArrayLike | Tensor | None = None) -> Tensor:
        """Return the losses of predictions.

        Args:
            y_hat: Predictions, shape (n, *label_shape); axes in front, as in
                (models, n, *label_shape), are several predictions for the same instances.
            index: Which instances the predictions are for, shape (n,): a tensor, an array or a
                list of whole numbers. None is all of them in order, which spares a copy of the
                parameters.

        Returns:
            A scalar, or losses of shape (n,) or (..., n) where reduction is "none".
        """
        chosen = None if index is None else check_index(index, self.y.device)
        y = self.y if chosen is None else rows_at(self.y, chosen)
        check_prediction_shape(y_hat, len(y), self.label_shape)
        in_front = y_hat.shape[: y_hat.ndim - len(self.label_shape)]
        d = y_hat.reshape(-1, *y.shape) - y
        phi = {name: self._parameter(name, chosen).to(d.dtype) for name in self._names}
        losses: Tensor = self.family.value(phi, d.transpose(0, 1)).T.reshape(in_front)
        return losses if self.reduction == "none" else getattr(losses, self.reduction)()

    def _parameter(self, name: str, index: Tensor | None) -> Tensor:
        rows: Tensor = getattr(self, f"phi_{name}")
        return rows if index is None else rows_at(rows, index)

    def extra_repr(self) -> str:
        """Say what the buffers hold."""
        return f"{self.family}, n_instances={len(self.y)}, label_shape={tuple(self.label_shape)}"


def _float_tensor(rows: Array, dtype: torch.dtype | None) -> Tensor:
    return torch.tensor(rows, dtype=dtype or torch.get_default_dtype())
