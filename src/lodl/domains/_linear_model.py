"""Linear Model: choose the best of many items. The paper's first domain."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_labels
from lodl._typing import Array, InstanceContext
from lodl.domains._domain import Domain, ModelShape, Sizes, Split, Splits, check_sizes, streams
from lodl.errors import InvalidInputError
from lodl.problems import LinearProblem


def linear_model(
    seed: int = 0,
    *,
    sizes: Sizes = (200, 200, 400),
    n_items: int = 50,
    budget: int = 1,
    x_range: tuple[float, float] = (-1.0, 1.0),
) -> Domain:
    """Linear Model: choose the best item, with a model too simple to predict well.

    Data. An instance has 50 items, each with one feature x drawn uniformly from [-1, 1] and the
    utility y = 10 x^3 - 6.5 x. There are 200 training, 200 validation and 400 test instances, and
    each split has a random stream of its own. x has shape (n, 50, 1), y has shape (n, 50), and
    there is no context.

    Model. A straight line, y_hat = w x + b, the same for all items. It cannot follow the cubic. The
    least-squares line falls (w = -0.5) and so picks the item with the smallest x, nearly always the
    worst; any rising line picks the item with the largest x, nearly always the best.

    Solver. `TopK`: the `budget` items with the largest predictions, found by partition; of equal
    items the first. Exact.

    Objective. The sum of the true utilities of the chosen items, to be maximised.

    Differences from the paper. The paper prints x ~ U[0, 1]. On that range every
    method that predicts a rising line scores 1, which contradicts the paper's table (2-stage -0.95,
    DirectedWeightedMSE 0.96). With x ~ U[-1, 1], the default here, the table can be reproduced.
    `x_range=(0, 1)` gives the printed setting. Everything else is as in the paper.

    Args:
        seed: Random seed for the features.
        sizes: Number of training, validation and test instances.
        n_items: Items in an instance.
        budget: Items to choose.
        x_range: Lower and upper end of the uniform distribution of the features.
    """
    check_count("n_items", n_items)
    splits = []
    for size, rng in zip(check_sizes(sizes), streams("linear model", seed, 3), strict=True):
        x = rng.uniform(*x_range, size=(size, n_items))
        splits.append(Split(x[..., None], 10 * x**3 - 6.5 * x))
    return Domain(
        problem=TopK(budget),
        splits=Splits(*splits),
        model=ModelShape(n_features=1, n_outputs=1, hidden=(), output="identity"),
    )


@dataclass(frozen=True)
class TopK(LinearProblem):
    """Choose `budget` of N items to gain the most utility (the paper's Linear Model domain).

        max_z  sum_i z_i y_i,   z_i in {0, 1},   sum_i z_i = budget

    A label has shape (N,), a decision is a vector of N zeros and ones. Of equal items the first is
    taken. There is no context.

    Attributes:
        budget: Number of items to choose.
    """

    budget: int = 1
    sense = "max"

    def __post_init__(self) -> None:
        check_count("budget", self.budget)

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        if y_hats.ndim != 2 or y_hats.shape[1] < self.budget:
            raise InvalidInputError(
                f"A prediction must be a vector of at least `budget` = {self.budget} utilities, "
                f"got shape {y_hats.shape[1:]}."
            )
        zs = np.zeros(y_hats.shape)
        zs[np.arange(len(zs))[:, np.newaxis], _best(y_hats, self.budget)] = 1.0
        return zs


def _best(y_hats: Array, budget: int) -> npt.NDArray[np.intp]:
    """Return the positions of the `budget` largest numbers of each row, the first among equals."""
    if budget == 1:  # several times faster than a partition
        first: npt.NDArray[np.intp] = y_hats.argmax(axis=1, keepdims=True)
        return first
    n_items = y_hats.shape[1]
    best = np.argpartition(y_hats, n_items - budget, axis=1)[:, n_items - budget :]
    # A partition takes any of the items that tie for the last place: sort those rows instead.
    last = np.take_along_axis(y_hats, best, axis=1).min(axis=1, keepdims=True)
    tied = (y_hats >= last).sum(axis=1) > budget
    best[tied] = np.argsort(-y_hats[tied], axis=1, kind="stable")[:, :budget]
    return best
