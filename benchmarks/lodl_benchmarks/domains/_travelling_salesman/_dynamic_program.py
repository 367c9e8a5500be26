"""Small tours: dynamic programming over sets of nodes (Held and Karp, 1962)."""

import numpy as np
import numpy.typing as npt

from lodl._typing import Array

_BLOCK_SIZE = 2**20  # numbers in the table of least costs: 8 MB
_MIN_ROWS = 16  # predictions at once: fewer would waste the processor's vector units


def best_tours(y_hats: Array, n_nodes: int) -> Array:
    """Return the edges on the cheapest tour under each prediction, shape (k, n_edges)."""
    edge_of = np.zeros((n_nodes, n_nodes), dtype=np.intp)
    first, second = np.triu_indices(n_nodes, k=1)
    edge_of[first, second] = edge_of[second, first] = np.arange(len(first))
    zs = np.zeros(y_hats.shape)
    rows = max(_MIN_ROWS, _BLOCK_SIZE // (n_nodes * 2 ** (n_nodes - 1)))
    for start in range(0, len(zs), rows):
        block = slice(start, start + rows)
        tours = _visits(y_hats[block].T[edge_of])
        edges = edge_of[tours, np.roll(tours, 1, axis=0)]
        zs[block][np.arange(tours.shape[1]), edges] = 1.0
    return zs


def _visits(costs: Array) -> npt.NDArray[np.intp]:
    """Return the nodes of the cheapest tours in the order of the visits, shape (N, k).

        cost(nodes, j) = min_{i in nodes - j} cost(nodes - j, i) + c_ij

    is the least cost of a way from the last node of all through `nodes`, ending at j. A set of
    nodes is a number, bit by bit.

    Args:
        costs: Costs between nodes, shape (N, N, k).
    """
    home = len(costs) - 1
    cost = np.full((2**home, home, costs.shape[2]), np.inf)
    cost[2 ** np.arange(home), np.arange(home)] = costs[home, :home]
    sets = np.arange(2**home)
    for size in range(1, home):
        of_size = sets[np.bitwise_count(sets) == size]
        for j in range(home):
            before = of_size[of_size >> j & 1 == 0]
            cost[before + 2**j, j] = (cost[before] + costs[:home, j]).min(axis=1)
    tours = np.full((home + 1, costs.shape[2]), home)
    each, nodes = np.arange(costs.shape[2]), np.full(costs.shape[2], 2**home - 1)
    for place in range(home):
        onward = costs[:home, tours[place], each]
        tours[place + 1] = (cost[nodes, :, each].T + onward).argmin(axis=0)
        nodes -= 2 ** tours[place + 1]
    return tours
