"""Folds inside the training instances, for predictions of instances that a model has not seen."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Index = npt.NDArray[np.intp]


def inner_folds(n: int, n_folds: int, seed: int) -> Iterator[tuple[Index, Index]]:
    """Yield, for each fold of a random partition, the other instances and those of the fold."""
    order = np.random.default_rng(seed).permutation(n)
    for start in range(min(n_folds, n)):
        part = np.sort(order[start::n_folds])
        yield np.setdiff1d(np.arange(n), part), part
