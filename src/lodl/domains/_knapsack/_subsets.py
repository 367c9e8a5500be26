"""Knapsack by trying every set of items that fits."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lodl._typing import Array

_BLOCK_SIZE = 2**17  # numbers in one temporary array: 1 MB, which stays in the cache
_ROUNDING = 1e-9  # of the capacity: sums of weights such as 3.1 are not exact

_Level = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]


@dataclass(frozen=True, eq=False)
class Subsets:
    """The sets of items that fit, smaller sets first; the first is empty.

    Attributes:
        members: Whether an item is in a set, shape (n_sets, N).
        levels: For the sets of one item, of two, and so on: the place among the sets of one item
            less that each of them extends, and the item that it adds.
    """

    members: npt.NDArray[np.bool_]
    levels: list[_Level]


@lru_cache(maxsize=8)  # weights come back, with the next instance or the next candidates
def subsets_that_fit(
    weights_of: tuple[tuple[float, ...], ...], capacity: tuple[float, ...], max_subsets: int
) -> Subsets | None:
    """Return the sets of items within the capacity, or None if there are too many.

    Args:
        weights_of: For each dimension the weights of all items.
        capacity: Capacity in each dimension.
        max_subsets: Largest number of sets to return.
    """
    weights, most = np.array(weights_of), np.array(capacity) * (1 + _ROUNDING)
    n_items = weights.shape[1]
    members = [np.zeros((1, n_items), dtype=np.bool_)]
    levels: list[_Level] = []
    last, load, n_subsets = np.array([-1]), np.zeros((len(weights), 1)), 1
    while True:
        can_add = last[:, np.newaxis] < np.arange(n_items)  # each set in rising order of its items
        for weight, loaded, limit in zip(weights, load, most, strict=True):
            can_add &= loaded[:, np.newaxis] + weight <= limit
        n_subsets += int(can_add.sum())
        if n_subsets > max_subsets:
            return None
        parents, last = np.nonzero(can_add)
        if len(last) == 0:
            return Subsets(np.concatenate(members), levels)
        load = load[:, parents] + weights[:, last]
        members.append(members[-1][parents])
        members[-1][np.arange(len(last)), last] = True
        levels.append((parents, last))


def best_subset(y_hats: Array, subsets: Subsets) -> Array:
    """Return the set of most value under each prediction, the first among equals, shape (k, N)."""
    best = np.empty(len(y_hats), dtype=np.intp)
    rows = max(1, _BLOCK_SIZE // len(subsets.members))
    for start in range(0, len(y_hats), rows):
        block = slice(start, start + rows)
        values = [np.zeros((len(y_hats[block]), 1))]
        for parents, items in subsets.levels:
            values.append(values[-1].take(parents, axis=1) + y_hats[block].take(items, axis=1))
        best[block] = np.concatenate(values, axis=1).argmax(axis=1)
    return subsets.members[best].astype(np.float64)
