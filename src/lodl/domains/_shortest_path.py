"""Shortest path: cross a grid at the least cost."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_labels
from lodl._typing import Array, InstanceContext
from lodl.domains._domain import (
    Domain,
    ModelShape,
    Sizes,
    Split,
    check_sizes,
    legacy_rng,
    polynomial_labels,
    split_in_order,
)
from lodl.errors import InvalidInputError
from lodl.problems import LinearProblem

_Arcs = npt.NDArray[np.intp]


def shortest_path(
    seed: int = 135,
    *,
    sizes: Sizes = (1000, 250, 1000),
    grid: tuple[int, int] = (5, 5),
    n_features: int = 5,
    degree: int = 4,
    noise: float = 0.5,
) -> Domain:
    """Shortest path: cross a grid from corner to corner, by the predicted costs of its arcs.

    Data. The arcs lead right and down; a 5 x 5 grid has 40 of them. An instance has 5 features in
    all, x ~ N(0, I), and the cost of each arc is a polynomial of a random half of them,

        y_j = ((B_j x / sqrt(5) + 3)^degree + 1) / 3.5^degree * e_j,

    with a random 0/1 matrix B, the same for all instances, and noise e_j ~ U[1 - noise, 1 + noise].
    x has shape (n, 5), y has shape (n, 40), and there is no context. Arcs are numbered row by row:
    the arcs to the right within a row, then those down from it.

    Model. Linear, from the 5 features to all 40 costs at once. It fits degree 1; the higher the
    degree, the more it must choose which costs to get right.

    Solver. `ShortestPath`: dynamic programming along the diagonals of the grid, for all predictions
    at once. Exact. In batches of 500 a call takes 0.5 µs on a 5 x 5 grid (40 arcs), 2 µs on 12 x 12
    (264 arcs) and 15 µs on 30 x 30 (1,740 arcs): `python speed/domains.py`.

    Objective. The sum of the true costs of the arcs on the path, to be minimised.

    Background. The task is that of Elmachtoub and Grigas (2022), who use
    degrees 1 to 8, noise 0 and 0.5, 100 to 5,000 training instances, a quarter as many to validate
    and 10,000 to test; the data is that of PyEPO, which gives the same features and costs for the
    same seed and the same number of instances in all. (PyEPO rounds costs to single precision.)
    The least-squares model has a relative test regret of 0.08 to 0.10, depending on the seed.

    Args:
        seed: Random seed for the data.
        sizes: Number of training, validation and test instances.
        grid: Rows and columns of the grid.
        n_features: Features of an instance.
        degree: Degree of the polynomial.
        noise: Half width of the multiplicative noise.
    """
    problem, sizes = ShortestPath(grid), check_sizes(sizes)
    shape = (sum(sizes), n_features, problem.n_arcs)
    x, y = polynomial_labels(legacy_rng(seed), shape, degree=degree, noise=noise)
    return Domain(
        problem=problem,
        splits=split_in_order(Split(x, y), sizes),
        model=ModelShape(n_features, n_outputs=problem.n_arcs, hidden=(), output="identity"),
    )


@dataclass(frozen=True)
class ShortestPath(LinearProblem):
    """Cross a grid from its first to its last node, along arcs that lead right or down.

        min_z  sum_a z_a y_a,   z the 0/1 vector of the arcs on a path

    A label has one cost per arc, a decision is a vector of as many zeros and ones. Arcs are
    numbered row by row: those to the right within a row, then those down from it. Costs may be
    negative. Of equal ways to a node the one from above is taken. There is no context.

    Attributes:
        grid: Rows and columns.
    """

    grid: tuple[int, int] = (5, 5)
    sense = "min"

    def __post_init__(self) -> None:
        rows, columns = (check_count("grid", size) for size in self.grid)
        if rows * columns < 2:
            raise InvalidInputError(f"`grid` must have at least two nodes, got {self.grid}.")

    @property
    def n_arcs(self) -> int:
        """Number of arcs."""
        rows, columns = self.grid
        return rows * (columns - 1) + columns * (rows - 1)

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        if y_hats.shape[1:] != (self.n_arcs,):
            raise InvalidInputError(
                f"A prediction must be a vector of {self.n_arcs} costs, one per arc of the grid "
                f"{self.grid}, got shape {y_hats.shape[1:]}."
            )
        down, right = _arcs_into_nodes(self.grid)
        is_down = _cheapest_arcs(y_hats, down, right)
        zs = np.zeros(y_hats.shape)
        each, row = np.arange(len(zs)), np.full(len(zs), self.grid[0] - 1)
        for diagonal in range(sum(self.grid) - 2, 0, -1):  # from the last node back to the first
            column = diagonal - row
            from_above = is_down[diagonal - 1, row, each]
            zs[each, np.where(from_above, down[row, column], right[row, column])] = 1.0
            row -= from_above
        return zs


def _arcs_into_nodes(grid: tuple[int, int]) -> tuple[_Arcs, _Arcs]:
    """Return the arcs that lead to each node from above and from the left, -1 where none does."""
    rows, columns = np.indices(grid)
    n_columns = grid[1]
    first_of_row = rows * (2 * n_columns - 1)
    down = np.where(rows > 0, first_of_row - n_columns + columns, -1)
    right = np.where(columns > 0, first_of_row + columns - 1, -1)
    return down, right


def _cheapest_arcs(y_hats: Array, down: _Arcs, right: _Arcs) -> npt.NDArray[np.bool_]:
    """Return whether the cheapest way to a node comes from above, shape (diagonals, rows, k).

    All predictions and all nodes of a diagonal are handled at once: a node can only be reached from
    the diagonal before.
    """
    n_rows, n_columns = down.shape
    # The predictions side by side, and behind the last arc (at -1) the cost of one that is missing.
    costs = np.concatenate([y_hats.T, np.full((1, len(y_hats)), np.inf)])
    is_down = np.empty((n_rows + n_columns - 2, n_rows, len(y_hats)), dtype=np.bool_)
    distance = np.zeros((n_rows + 1, len(y_hats)))  # of the last node met in each row, from row -1
    for diagonal in range(1, n_rows + n_columns - 1):
        first, stop = max(0, diagonal - n_columns + 1), min(diagonal + 1, n_rows)
        row = np.arange(first, stop)
        from_above = distance[first:stop] + costs[down[row, diagonal - row]]
        from_left = distance[first + 1 : stop + 1] + costs[right[row, diagonal - row]]
        np.less_equal(from_above, from_left, out=is_down[diagonal - 1, first:stop])
        np.minimum(from_above, from_left, out=distance[first + 1 : stop + 1])
    return is_down
