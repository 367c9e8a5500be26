"""Knapsack with whole weights: dynamic programming over the capacity."""

import numpy as np
import numpy.typing as npt

from lodl._typing import Array

_BLOCK_SIZE = 2**20  # entries of the table that says what was taken


def best_packing(y_hats: Array, weights: npt.NDArray[np.int64], capacity: int) -> Array:
    """Return the packing of most value under each prediction.

        value(i, room) = max(value(i - 1, room), value(i - 1, room - w_i) + y_i)

    for all rooms and many predictions at once. An item that adds nothing is left out.

    Args:
        y_hats: Predicted values, shape (k, N).
        weights: Weights, shape (N,).
        capacity: Total weight that fits.

    Returns:
        Vectors of zeros and ones, shape (k, N).
    """
    rows = max(1, _BLOCK_SIZE // (len(weights) * (capacity + 1)))
    blocks = [y_hats[start : start + rows] for start in range(0, len(y_hats), rows)]
    return np.concatenate([_pack(block, weights, capacity) for block in blocks])


def _pack(y_hats: Array, weights: npt.NDArray[np.int64], capacity: int) -> Array:
    # The room comes before the prediction, so that moving on by a weight keeps memory in one piece.
    value = np.zeros((capacity + 1, len(y_hats)))
    is_taken = np.zeros((len(weights), *value.shape), dtype=np.bool_)
    for item, weight in enumerate(weights):
        with_item = value[: max(0, capacity + 1 - weight)] + y_hats[:, item]
        np.greater(with_item, value[weight:], out=is_taken[item, weight:])
        np.maximum(value[weight:], with_item, out=value[weight:])
    zs = np.empty(y_hats.shape)
    each, room = np.arange(len(y_hats)), np.full(len(y_hats), capacity)
    for item in reversed(range(len(weights))):
        taken = is_taken[item, room, each]
        room -= taken * weights[item]
        zs[:, item] = taken
    return zs
