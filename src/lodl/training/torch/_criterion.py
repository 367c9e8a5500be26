"""`LearnedLossModule`: a learned loss as a PyTorch criterion."""

from collections.abc import Callable
from typing import Any, Literal

import numpy.typing as npt
import torch
from torch import Tensor, nn

from lodl.errors import InvalidInputError
from lodl.losses import Family, LearnedLoss
from lodl.losses._shared_slopes import gathered, join_slopes, split_slopes

Reduction = Literal["mean", "sum", "none"]

_MAX_AT_ONCE = 2**21  # parameters of a batch; more do not fit into the caches of a processor
_N_CACHED = 2**20  # parameters of a part of such a batch


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
        d, phi_of, parts = self._parts(y_hat, index)
        if len(parts) == 1 or not (torch.is_grad_enabled() and d.requires_grad):
            value = torch.cat([self.family.value(phi_of(part), d[part]) for part in parts])
        else:
            value, _ = _WithGradient.apply(d, self.family, phi_of, parts)  # type: ignore[no-untyped-call]
        losses = value.T.reshape(y_hat.shape[: y_hat.ndim - len(self.label_shape)])
        return losses if self.reduction == "none" else getattr(losses, self.reduction)()

    def gradient(self, y_hat: Tensor, index: npt.ArrayLike | Tensor | None = None) -> Tensor:
        """Return the derivative of each loss by its prediction, which is quicker than autograd."""
        d, phi_of, parts = self._parts(y_hat.detach(), index)
        by_d = torch.cat([self.family.gradient(phi_of(part), d[part]) for part in parts])
        return by_d.transpose(0, 1).reshape(y_hat.shape)

    def _parts(self, y_hat: Tensor, index: Any) -> tuple[Tensor, Callable[..., Any], list[slice]]:
        """Return errors (n, m, D), the parameters of a slice, and slices that fit into a cache."""
        rows = None if index is None else _check_index(index, self.y.device)
        y = self.y if rows is None else _rows_at(self.y, rows)
        _check_shape(y_hat, len(y), self.label_shape)
        d = (y_hat.reshape(-1, *y.shape) - y).transpose(0, 1)
        buffers = {name: getattr(self, buffer) for name, buffer in self._names.items()}

        def phi_of(part: slice) -> dict[str, Any]:
            at = part if rows is None else rows[part]
            phi = join_slopes(buffers)
            return {name: values[at].to(d.dtype) for name, values in phi.items()}

        size = max(values[:1].numel() for values in buffers.values())  # parameters of an instance
        is_small = len(d) * size <= _MAX_AT_ONCE or torch.compiler.is_compiling()
        step = len(d) if is_small or d.device.type != "cpu" else max(_N_CACHED // size, 1)
        return d, phi_of, [slice(start, start + step) for start in range(0, len(d), step)]

    def extra_repr(self) -> str:
        return f"{self.family}, n_instances={len(self.y)}, label_shape={tuple(self.label_shape)}"


class _WithGradient(torch.autograd.Function):
    """Losses of shape (n, m), whose gradients are computed while their parameters are cached."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        d: Tensor, family: Family, phi_of: Callable[[slice], dict[str, Any]], parts: list[slice]
    ) -> tuple[Tensor, Tensor]:
        both = [family.value_and_gradient(phi_of(part), d[part]) for part in parts]
        return torch.cat([value for value, _ in both]), torch.cat([by_d for _, by_d in both])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        d, *ctx.how = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(d, output[1])

    @staticmethod
    def backward(ctx: Any, by_value: Tensor, _: Tensor) -> tuple[Tensor, None, None, None]:
        d, gradient = ctx.saved_tensors
        family, phi_of, parts = ctx.how
        if torch.is_grad_enabled():  # second derivatives are wanted
            gradient = torch.cat([family.gradient(phi_of(part), d[part]) for part in parts])
        return by_value[..., None] * gradient, None, None, None


def _check_index(index: npt.ArrayLike | Tensor, device: torch.device) -> Tensor:
    """Return an index as a tensor of int64. Its values are not read: a GPU would have to wait."""
    try:
        checked = torch.as_tensor(index, device=device)
    except (RuntimeError, TypeError, ValueError) as error:
        got = f"{type(index).__name__}: {error}"
        raise InvalidInputError(f"`index` must be a list of whole numbers, got {got}.") from error
    if checked.shape == (0,):
        got = "none. Skip empty batches"
        raise InvalidInputError(f"`index` must name at least one instance, got {got}.")
    if checked.ndim != 1 or checked.dtype.is_floating_point or checked.dtype == torch.bool:
        got = f"{checked.dtype} of shape {tuple(checked.shape)}"
        raise InvalidInputError(f"`index` must be a list of whole numbers, got {got}.")
    return checked.long()


def _rows_at(rows: Tensor, index: Tensor) -> Tensor:
    """Return the rows at `index`. Unlike brackets, `index_select` refuses negative numbers."""
    try:
        return rows.index_select(0, index)
    except IndexError as error:
        wrong = index[(index < 0) | (index >= len(rows))]
        wanted = f"from 0 to {len(rows) - 1}, as there are {len(rows)} instances"
        got = f"{wrong[0].item()}. Are there more features than labels?"
        raise InvalidInputError(f"`index` must be {wanted}, got {got}") from error


def _check_shape(y_hat: object, n: int, label_shape: tuple[int, ...]) -> None:
    """Check that predictions have shape (..., n, *label_shape)."""
    if not isinstance(y_hat, Tensor):
        raise InvalidInputError(
            f"`y_hat` must be a tensor, got {type(y_hat).__name__}. Use `torch.as_tensor(y_hat)`, "
            "or `LearnedLoss.value` for NumPy arrays."
        )
    expected = (n, *label_shape)
    if y_hat.shape[max(0, y_hat.ndim - len(expected)) :] != expected:
        wanted = f"shape (n, *{label_shape}) and `index` shape (n,)"
        raise InvalidInputError(f"`y_hat` must have {wanted}, got {tuple(y_hat.shape)} and ({n},).")
