"""The constant prediction: a baseline that knows no decision."""

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl._validation import check_count, check_labels


def constant_predictions(y_train: npt.ArrayLike, n_instances: int) -> Array:
    """Returns the mean training label for every instance.

    Args:
        y_train: Training labels, shape (n, *label_shape).
        n_instances: How many predictions to make.

    Returns:
        Predictions, shape (n_instances, *label_shape).
    """
    y_train = check_labels(y_train, "y_train")
    n_instances = check_count("n_instances", n_instances)
    return np.broadcast_to(y_train.mean(axis=0), (n_instances, *y_train.shape[1:])).copy()
