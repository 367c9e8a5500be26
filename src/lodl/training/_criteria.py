"""What a model is trained to make small."""

from typing import Protocol

import numpy.typing as npt
import torch
from torch import Tensor, nn

from lodl._arrays import check_labels
from lodl.errors import InvalidInputError
from lodl.losses import mean_squared_error
from lodl.training._index import check_index, check_prediction_shape, rows_at


class Criterion(Protocol):
    """Per-instance losses of several models at once.

    `LearnedLossModule(loss, reduction="none")` is one; so is any function of this form.
    """

    def __call__(self, y_hat: Tensor, index: Tensor) -> Tensor:
        """Return losses (models, n) of predictions (models, n, *label_shape)."""
        ...


class SquaredError(nn.Module):
    """The two-stage loss: mean squared error over the label's coordinates.

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
        chosen = check_index(index, self.y.device)
        check_prediction_shape(y_hat, len(chosen), self.y.shape[1:])
        losses: Tensor = mean_squared_error(y_hat, rows_at(self.y, chosen))
        return losses


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
    expected, got = tuple(y_hat.shape[:2]), shape_or_type(losses)
    if got != expected:
        raise InvalidInputError(
            f"`criterion` must return losses of shape (models, n), here {expected}, got {got}. "
            'For a learned loss, use `LearnedLossModule(loss, reduction="none")`.'
        )


def shape_or_type(result: object) -> tuple[int, ...] | str:
    """Return the shape of a tensor, or the type of anything else."""
    return tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
