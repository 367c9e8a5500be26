"""What a model is trained to make small."""

from typing import Protocol

import numpy.typing as npt
import torch
from torch import Tensor, nn

from lodl._validation import check_labels
from lodl.errors import InvalidInputError
from lodl.losses import mean_squared_error
from lodl.training._index import check_fit, check_index, rows_at


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
        self.register_buffer("y", torch.tensor(check_labels(y), dtype=torch.get_default_dtype()))

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return len(self.y)

    def forward(self, y_hat: Tensor, index: npt.ArrayLike | Tensor) -> Tensor:
        """Returns losses of shape (..., n)."""
        chosen = check_index(index, self.y.device)
        check_fit(y_hat, chosen, self.y.shape[1:])
        losses: Tensor = mean_squared_error(y_hat, rows_at(self.y, chosen))
        return losses


def check_instances(objective: object, n_instances: int, argument: str) -> None:
    """Demands an objective of as many instances as there are features, where it tells its number.

    The losses of other instances would be taken without a word.
    """
    known = getattr(objective, "n_instances", n_instances)
    if known != n_instances:
        raise InvalidInputError(
            f"`{argument}` has {n_instances} instances, the losses are of {known}. Losses learned "
            "for training and validation together? Take each part: `loss.subset(np.arange(n))`."
        )


def check_losses(losses: object, y_hat: Tensor) -> None:
    """Demands of an objective's result one loss for each model and instance."""
    expected, got = tuple(y_hat.shape[:2]), shape_or_type(losses)
    if got != expected:
        raise InvalidInputError(
            f"`objective` must return losses of shape (models, n), here {expected}, got {got}. "
            'Is it a learned loss? Use `LearnedLossModule(loss, reduction="none")`.'
        )


def shape_or_type(result: object) -> tuple[int, ...] | str:
    """Returns the shape of a tensor, or else what it is."""
    return tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
