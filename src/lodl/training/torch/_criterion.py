"""Training criteria and validation scores for PyTorch: `LearnedLossModule`, `SquaredError`.

Arguments are checked by shape and dtype only: looking at values would make a GPU wait, and break
graphs and `vmap`.
"""

from collections.abc import Callable
from typing import Literal, Protocol

import numpy.typing as npt
import torch
from torch import Tensor, nn

from lodl._arrays import check_labels
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss, mean_squared_error

Reduction = Literal["mean", "sum", "none"]
Score = Callable[[Tensor], Tensor]
"""Validation scores (models,), lower is better, of predictions (models, n, *label_shape)."""


class Criterion(Protocol):
    """Per-instance losses of several models at once.

    `LearnedLossModule(loss, reduction="none")` is one; so is any function of this form.
    """

    def __call__(self, y_hat: Tensor, index: Tensor) -> Tensor:
        """Return losses (models, n) of predictions (models, n, *label_shape)."""
        ...


class LearnedLossModule(nn.Module):
    """The learned losses of many instances: `criterion(y_hat, index)`.

    Labels and parameters are buffers: they move with `.to(device)` and are in the state dict;
    there is nothing to train. The family's own formula is computed, so autograd gives the gradient,
    and `torch.compile` and `torch.func` see plain tensor operations.

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
            index: The instances that the predictions are for, shape (n,): a tensor, an array or a
                list of whole numbers. Defaults to all instances in order, which avoids copying the
                parameters.

        Returns:
            A scalar, or losses of shape (n,) or (..., n) if the reduction is "none".
        """
        rows = None if index is None else _check_index(index, self.y.device)
        y = self.y if rows is None else _rows_at(self.y, rows)
        _check_prediction_shape(y_hat, len(y), self.label_shape)
        in_front = y_hat.shape[: y_hat.ndim - len(self.label_shape)]
        d = y_hat.reshape(-1, *y.shape) - y
        phi = {name: self._parameter(name, rows).to(d.dtype) for name in self._names}
        losses: Tensor = self.family.value(phi, d.transpose(0, 1)).T.reshape(in_front)
        return losses if self.reduction == "none" else getattr(losses, self.reduction)()

    def _parameter(self, name: str, index: Tensor | None) -> Tensor:
        rows: Tensor = getattr(self, f"phi_{name}")
        return rows if index is None else _rows_at(rows, index)

    def extra_repr(self) -> str:
        """Return the family and the size of the buffers."""
        return f"{self.family}, n_instances={len(self.y)}, label_shape={tuple(self.label_shape)}"


class SquaredError(nn.Module):
    """The baseline's loss: mean squared error over the label's coordinates.

    Args:
        y: Labels, shape (n_instances, *label_shape).
    """

    y: Tensor

    def __init__(self, y: npt.ArrayLike) -> None:
        super().__init__()
        self.register_buffer("y", torch.tensor(check_labels(y), dtype=torch.get_default_dtype()))

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return len(self.y)

    def forward(self, y_hat: Tensor, index: npt.ArrayLike | Tensor) -> Tensor:
        """Return losses of shape (..., n)."""
        rows = _check_index(index, self.y.device)
        _check_prediction_shape(y_hat, len(rows), self.y.shape[1:])
        losses: Tensor = mean_squared_error(y_hat, _rows_at(self.y, rows))
        return losses


def validation_loss(criterion: Criterion, n_instances: int) -> Score:
    """Score predictions by their mean loss.

    Args:
        criterion: Losses of the validation instances, such as those learned for them.
        n_instances: Number of validation instances.
    """
    check_instances(criterion, n_instances, "n_instances")
    index = torch.arange(n_instances)

    def score(y_hat: Tensor) -> Tensor:
        losses = criterion(y_hat, index)
        check_losses(losses, y_hat)
        return losses.mean(dim=-1)

    return score


def validation_cost(cost: Callable[[Array], Array]) -> Score:
    """Score predictions by their mean cost, given by a function of NumPy arrays.

    For the mean regret of the decisions, at one solver call per prediction:

        validation_cost(partial(lodl.evaluation.regret, problem, y=y))

    A model with a prediction that is not finite scores NaN, which is never better.

    Args:
        cost: Returns costs (models, n) of predictions (models, n, *label_shape).
    """

    def score(y_hat: Tensor) -> Tensor:
        scores = torch.full((len(y_hat),), torch.nan, dtype=torch.float64)
        finite = y_hat.flatten(1).isfinite().all(dim=1).cpu()
        if finite.any():
            costs = cost(y_hat[finite].double().cpu().numpy())
            scores[finite] = torch.as_tensor(costs.mean(axis=-1))
        return scores

    return score


def check_instances(criterion: object, n_instances: int, argument: str) -> None:
    """Check that a criterion that knows its number of instances has as many as the features.

    Otherwise the losses of other instances would be used silently.
    """
    known = getattr(criterion, "n_instances", n_instances)
    if known != n_instances:
        raise InvalidInputError(
            f"`{argument}` has {n_instances} instances, but the losses are for {known}. If they "
            "were learned for training and validation together, take each part with "
            "`loss.subset(np.arange(n))`."
        )


def check_losses(losses: object, y_hat: Tensor) -> None:
    """Check that a criterion returned one loss per model and instance."""
    expected, got = tuple(y_hat.shape[:2]), _shape_or_type(losses)
    if got != expected:
        raise InvalidInputError(
            f"`criterion` must return losses of shape (models, n), here {expected}, got {got}. "
            'For a learned loss, use `LearnedLossModule(loss, reduction="none")`.'
        )


def check_first_scores(scores: object, n_models: int) -> None:
    """Check that every model has one finite score before it is trained."""
    if not isinstance(scores, Tensor) or scores.shape != (n_models,):
        raise InvalidInputError(
            f"`score` must return a tensor of shape (models,), here ({n_models},), "
            f"got {_shape_or_type(scores)}. Does it average over the instances only?"
        )
    if not scores.isfinite().all():
        raise InvalidInputError(
            "`score` must be finite for the models before they are trained, got "
            f"{scores.tolist()}. Check the validation labels and the models' predictions."
        )


def _shape_or_type(result: object) -> tuple[int, ...] | str:
    return tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__


def _float_tensor(rows: Array, dtype: torch.dtype | None) -> Tensor:
    return torch.tensor(rows, dtype=dtype or torch.get_default_dtype())


def _check_index(index: npt.ArrayLike | Tensor, device: torch.device) -> Tensor:
    """Return an index as a tensor of int64."""
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


def _check_prediction_shape(
    y_hat: object, n: int, label_shape: torch.Size | tuple[int, ...]
) -> None:
    """Check that predictions have shape (..., n, *label_shape)."""
    if not isinstance(y_hat, Tensor):
        raise InvalidInputError(
            f"`y_hat` must be a tensor, got {type(y_hat).__name__}. Use `torch.as_tensor(y_hat)`, "
            "or `LearnedLoss.value` for NumPy arrays."
        )
    expected = (n, *label_shape)
    if y_hat.shape[max(0, y_hat.ndim - len(expected)) :] != expected:
        raise InvalidInputError(
            f"`y_hat` must have shape (n, *{tuple(label_shape)}) and `index` shape (n,), "
            f"got {tuple(y_hat.shape)} and ({n},)."
        )


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
