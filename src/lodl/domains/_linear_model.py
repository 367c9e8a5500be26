"""Linear Model: choose the best of many items. The paper's first domain."""

from dataclasses import dataclass

import numpy as np

from lodl._arrays import check_count, check_labels
from lodl._typing import Array, InstanceContext
from lodl.domains._domain import Domain, Sizes, Split, Splits, check_sizes, streams
from lodl.errors import InvalidInputError
from lodl.problems import LinearProblem


def linear_model(seed: int = 0, *, sizes: Sizes = (200, 200, 400), n_items: int = 50) -> Domain:
    """Linear Model: choose the best item, with a model too simple to predict well.

    Data: an instance has 50 items, each with one feature x drawn uniformly from [-1, 1] and the
    utility y = 10 x^3 - 6.5 x. x has shape (n, 50, 1), y has shape (n, 50).

    Model: a straight line, y_hat = w x + b, the same for all items. The least-squares line falls
    and picks nearly always the worst item, any rising line nearly always the best. Problem: `TopK`.

    Differences from the paper: it prints x ~ U[0, 1], which contradicts its table.

    Args:
        seed: Random seed for the features.
        sizes: Number of training, validation and test instances.
        n_items: Items in an instance.
    """
    check_count("n_items", n_items)
    splits = []
    for size, rng in zip(check_sizes(sizes), streams("linear model", seed, 3), strict=True):
        x = rng.uniform(-1, 1, size=(size, n_items))
        splits.append(Split(x[..., None], 10 * x**3 - 6.5 * x))
    return Domain(TopK(1), Splits(*splits))


@dataclass(frozen=True)
class TopK(LinearProblem):
    """Choose `budget` of N items to gain the most utility (the paper's Linear Model domain).

        max_z  sum_i z_i y_i,   z_i in {0, 1},   sum_i z_i = budget

    A label has shape (N,), a decision is a vector of N zeros and ones. Of equal items the first is
    taken. There is no context.
    """

    budget: int = 1  #: Number of items to choose.
    sense = "max"

    def __post_init__(self) -> None:
        check_count("budget", self.budget)

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        if y_hats.ndim != 2 or y_hats.shape[1] < self.budget:
            wanted = f"a vector of at least `budget` = {self.budget} utilities"
            raise InvalidInputError(f"A prediction must be {wanted}, got shape {y_hats.shape[1:]}.")
        if self.budget == 1:  # many times faster than to sort
            best = y_hats.argmax(axis=1, keepdims=True)
        else:
            best = np.argsort(-y_hats, axis=1, kind="stable")[:, : self.budget]
        zs = np.zeros(y_hats.shape)
        np.put_along_axis(zs, best, 1.0, axis=1)
        return zs
