"""Checks of predictions and of the instances they are for, by shape and dtype only.

Looking at values would make a GPU wait, and break graphs and `vmap`.
"""

import numpy.typing as npt
import torch
from torch import Tensor

from lodl.errors import InvalidInputError


def check_index(index: npt.ArrayLike | Tensor, device: torch.device) -> Tensor:
    """Return an index as a tensor of int64."""
    try:
        chosen = torch.as_tensor(index, device=device)
    except (RuntimeError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"`index` must be a list of whole numbers, got {type(index).__name__}: {error}."
        ) from error
    if chosen.shape == (0,):
        raise InvalidInputError(
            "`index` must name at least one instance, got none. Skip empty batches."
        )
    if chosen.ndim != 1 or chosen.dtype.is_floating_point or chosen.dtype == torch.bool:
        raise InvalidInputError(
            "`index` must be a list of whole numbers, got "
            f"{chosen.dtype} of shape {tuple(chosen.shape)}."
        )
    return chosen.long()


def check_prediction_shape(
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


def rows_at(rows: Tensor, index: Tensor) -> Tensor:
    """Return the rows at `index`; unlike brackets, `index_select` refuses negative numbers."""
    try:
        return rows.index_select(0, index)
    except IndexError as error:
        wrong = index[(index < 0) | (index >= len(rows))]
        raise InvalidInputError(
            f"`index` must be from 0 to {len(rows) - 1}, as there are {len(rows)} instances, "
            f"got {wrong[0].item()}. Are there more features than labels?"
        ) from error
