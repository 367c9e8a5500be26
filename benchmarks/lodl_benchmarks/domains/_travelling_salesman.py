"""Travelling salesman: visit all nodes and return, at the least cost."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist

from lodl._arrays import check_count, check_number
from lodl._typing import Array, InstanceContext
from lodl.domains import Domain
from lodl.domains._domain import Sizes, check_sizes, check_vectors, in_blocks, legacy_rng
from lodl.errors import InvalidInputError
from lodl.problems import LinearProblem

_MOST_NODES = 14  # time and memory of the dynamic program more than double with each
_BLOCK_SIZE = 2**20  # numbers in the table of least costs: 8 MB
_MIN_ROWS = 16  # predictions at once: fewer would waste the processor's vector units


def travelling_salesman(
    seed: int = 135,
    *,
    sizes: Sizes = (300, 100, 500),
    n_nodes: int = 10,
    degree: int = 4,
    noise: float = 0.5,
) -> Domain:
    """Travelling salesman: visit all nodes and return, by the predicted costs of the edges.

    Data: half of the 10 nodes lie uniformly in a square, the others around its centre. An instance
    has 5 features in all, x ~ N(0, I), and the cost of each of the 45 edges is its fixed length
    plus a polynomial of a random half of the features,

        y_j = length_j + (B_j x / sqrt(5) + 3)^degree / 3^(degree - 1) * e_j,

    rounded to four decimals, with B_jk zero or, equally likely, U[-2, 2], the same for all
    instances, and noise e_j ~ U[1 - noise, 1 + noise]. x has shape (n, 5), y has shape (n, 45).
    Model: linear, from the features to all costs at once. Problem: `TravellingSalesman`; in batches
    a call takes 40 µs for 10 nodes and 0.3 ms for 12.

    PyEPO (Tang and Khalil, 2024) gives the same features and costs, rounded to single precision,
    for the same seed and the same number of instances in all; it is used there with 20 nodes. The
    least-squares model has a relative test regret of 0.08 to 0.10, depending on the seed.

    Args:
        seed: Random seed for the data.
        sizes: Number of training, validation and test instances.
        n_nodes: Nodes, 3 to 14.
        degree: Degree of the polynomial.
        noise: Half width of the multiplicative noise.
    """
    problem, sizes, rng = TravellingSalesman(n_nodes), check_sizes(sizes), legacy_rng(seed)
    check_count("degree", degree)
    check_number("noise", noise, at_least=0, at_most=1)
    in_square = rng.uniform(-2, 2, size=(n_nodes // 2, 2))
    around_centre = rng.normal(size=(n_nodes - n_nodes // 2, 2))
    lengths = pdist(np.concatenate([in_square, around_centre]))
    shape = (problem.n_edges, 5)
    matrix = rng.binomial(1, 0.5, size=shape) * rng.uniform(-2, 2, size=shape)
    x = rng.normal(size=(sum(sizes), 5))
    y = (x @ matrix.T / np.sqrt(5) + 3) ** degree / 3 ** (degree - 1)
    y = lengths + y * rng.uniform(1 - noise, 1 + noise, size=y.shape)
    return Domain.in_order(problem, sizes, x, np.around(y, decimals=4))


@dataclass(frozen=True)
class TravellingSalesman(LinearProblem):
    """Visit N nodes, each once, and return.

        min_z  sum_e z_e y_e,   z the 0/1 vector of the edges on a tour

    A label has one cost for each of N (N - 1) / 2 edges, which can be travelled both ways, a
    decision is a vector of as many zeros and ones. Edges are numbered by their first node, then by
    their second. Costs may be negative. There is no context. Exact: dynamic programming over sets
    of nodes (Held and Karp, 1962).

    Attributes:
        n_nodes: Number of nodes, 3 to 14.
    """

    n_nodes: int = 10
    sense = "min"

    def __post_init__(self) -> None:
        if check_count("n_nodes", self.n_nodes, minimum=3) > _MOST_NODES:
            raise InvalidInputError(f"`n_nodes` must be at most {_MOST_NODES}, got {self.n_nodes}.")

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return self.n_nodes * (self.n_nodes - 1) // 2

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        numbers = f"costs, one per edge between {self.n_nodes} nodes"
        y_hats = check_vectors(y_hats, self.n_edges, numbers)
        rows = max(_MIN_ROWS, _BLOCK_SIZE // (self.n_nodes * 2 ** (self.n_nodes - 1)))
        return in_blocks(self._best_tours, y_hats, rows)

    def _best_tours(self, y_hats: Array) -> Array:
        edge_of = np.zeros((self.n_nodes, self.n_nodes), dtype=np.intp)
        first, second = np.triu_indices(self.n_nodes, k=1)
        edge_of[first, second] = edge_of[second, first] = np.arange(len(first))
        tours = _visits(y_hats.T[edge_of])
        zs = np.zeros(y_hats.shape)
        zs[np.arange(len(zs)), edge_of[tours, np.roll(tours, 1, axis=0)]] = 1.0
        return zs


def _visits(costs: Array) -> npt.NDArray[np.intp]:
    """Return the nodes of the cheapest tours in the order of the visits, shape (N, k).

        cost(nodes, j) = min_{i in nodes - j} cost(nodes - j, i) + c_ij

    is the least cost of a way from the last node of all through `nodes`, ending at j. A set of
    nodes is a number, bit by bit. `costs` between nodes has shape (N, N, k).
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
