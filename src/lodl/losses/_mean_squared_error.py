"""The two-stage loss, which knows no decision."""

from typing import Any


def mean_squared_error(y_hat: Any, y: Any) -> Any:
    """Return the two-stage loss of each instance, on NumPy arrays and torch tensors alike.

        MSE(y_hat, y) = 1/D sum_i (y_hat_i - y_i)^2

    Args:
        y_hat: Predictions, shape (*batch, n, *label_shape).
        y: Labels, shape (n, *label_shape).

    Returns:
        Losses, shape (*batch, n).
    """
    label_axes = tuple(range(1 - y.ndim, 0))
    return ((y_hat - y) ** 2).mean(label_axes)
