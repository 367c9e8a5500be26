"""Predictions without skill: what any model should beat."""

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_labels
from lodl._typing import Array


def random_predictions(shape: tuple[int, ...], seed: int = 0) -> Array:
    """Return predictions uniform on [0, 1], which have a decision quality of 0 in the paper.

    Example:
        >>> y_hat = lodl.evaluation.random_predictions((2, 3), 0)
        >>> y_hat.shape, bool(((0 <= y_hat) & (y_hat <= 1)).all())
        ((2, 3), True)
    """
    return np.random.default_rng(seed).random(shape)


def constant_predictions(y_train: npt.ArrayLike, n_instances: int) -> Array:
    """Return the mean training label for every instance.

    Args:
        y_train: Training labels, shape (n, *label_shape).
        n_instances: Number of predictions to make.

    Returns:
        Predictions, shape (n_instances, *label_shape).

    Example:
        >>> lodl.evaluation.constant_predictions(np.array([[1.0, 4.0], [3.0, 0.0]]), 3)
        array([[2., 2.],
               [2., 2.],
               [2., 2.]])
    """
    y_train = check_labels(y_train, "y_train")
    n_instances = check_count("n_instances", n_instances)
    return np.broadcast_to(y_train.mean(axis=0), (n_instances, *y_train.shape[1:])).copy()
