"""`LearnedLossModule`: a learned loss as a PyTorch criterion."""

from typing import Literal

import numpy.typing as npt
import torch
from torch import Tensor, nn

from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss
from lodl.losses._shared_slopes import gathered, join_slopes, split_slopes

Reduction = Literal["mean", "sum", "none"]


class LearnedLossModule(nn.Module):
    """The learned losses of many instances: `criterion(y_hat, index)`.

    Labels and parameters are buffers; there is nothing to train. The loss is made of plain tensor
    operations, for autograd, `torch.compile` and `torch.func`.

    Args:
        loss: The learned loss.
        reduction: "mean" or "sum" over all losses, or "none".
        dtype: The type of labels and parameters. Defaults to torch's. Give torch.float64 for a
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
        self, loss: LearnedLoss, reduction: Reduction = "mean", *, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise InvalidInputError(
                f'`reduction` must be "mean", "sum" or "none", got {reduction!r}.'
            )
        self.family, self.label_shape, self.reduction = loss.family, loss.label_shape, reduction
        dtype = dtype or torch.get_default_dtype()
        self.register_buffer("y", torch.tensor(loss.y, dtype=dtype).flatten(1))
        self._names = {}
        for name, rows in split_slopes(gathered(loss.phi)).items():
            self._names[name] = f"phi_{name}".replace(".", "_")
            kind = dtype if rows.dtype.kind == "f" else torch.int64
            self.register_buffer(self._names[name], torch.tensor(rows, dtype=kind))

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return len(self.y)

    def forward(self, y_hat: Tensor, index: npt.ArrayLike | Tensor | None = None) -> Tensor:
        """Return the losses of predictions.

        Args:
            y_hat: Predictions, shape (n, *label_shape) or (..., n, *label_shape).
            index: The instances of the predictions, a list of whole numbers. Defaults to all in
                order, which avoids copying the parameters.

        Returns:
            A scalar, or losses of shape (n,) or (..., n) if the reduction is "none".
        """
        y = self.y
        phi = join_slopes({name: getattr(self, buffer) for name, buffer in self._names.items()})
        if index is not None:
            rows = _check_index(index, y.device)
            y, phi = _rows_at(y, rows), {name: values[rows] for name, values in phi.items()}
        _check_shape(y_hat, len(y), self.label_shape)
        in_front = y_hat.shape[: y_hat.ndim - len(self.label_shape)]
        d = y_hat.reshape(-1, *y.shape) - y
        phi = {name: values.to(d.dtype) for name, values in phi.items()}
        losses: Tensor = self.family.value(phi, d.transpose(0, 1)).T.reshape(in_front)
        return losses if self.reduction == "none" else getattr(losses, self.reduction)()

    def extra_repr(self) -> str:
        return f"{self.family}, n_instances={len(self.y)}, label_shape={tuple(self.label_shape)}"


def _check_index(index: npt.ArrayLike | Tensor, device: torch.device) -> Tensor:
    """Return an index as a tensor of int64. Its values are not read: a GPU would have to wait."""
    try:
        checked = torch.as_tensor(index, device=device)
    except (RuntimeError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"`index` must be a list of whole numbers, got {type(index).__name__}: {error}."
        ) from error
    if checked.shape == (0,):
        raise InvalidInputError(
            "`index` must name at least one instance, got none. Skip empty batches."
        )
    if checked.ndim != 1 or checked.dtype.is_floating_point or checked.dtype == torch.bool:
        raise InvalidInputError(
            "`index` must be a list of whole numbers, got "
            f"{checked.dtype} of shape {tuple(checked.shape)}."
        )
    return checked.long()


def _rows_at(rows: Tensor, index: Tensor) -> Tensor:
    """Return the rows at `index`. Unlike brackets, `index_select` refuses negative numbers."""
    try:
        return rows.index_select(0, index)
    except IndexError as error:
        wrong = index[(index < 0) | (index >= len(rows))]
        raise InvalidInputError(
            f"`index` must be from 0 to {len(rows) - 1}, as there are {len(rows)} instances, "
            f"got {wrong[0].item()}. Are there more features than labels?"
        ) from error


def _check_shape(y_hat: object, n: int, label_shape: tuple[int, ...]) -> None:
    """Check that predictions have shape (..., n, *label_shape)."""
    if not isinstance(y_hat, Tensor):
        raise InvalidInputError(
            f"`y_hat` must be a tensor, got {type(y_hat).__name__}. Use `torch.as_tensor(y_hat)`, "
            "or `LearnedLoss.value` for NumPy arrays."
        )
    expected = (n, *label_shape)
    if y_hat.shape[max(0, y_hat.ndim - len(expected)) :] != expected:
        raise InvalidInputError(
            f"`y_hat` must have shape (n, *{label_shape}) and `index` shape (n,), "
            f"got {tuple(y_hat.shape)} and ({n},)."
        )
