"""Travelling salesman: visit all nodes and return, at the least cost."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist

from lodl._typing import Array, InstanceContext
from lodl._validation import check_count, check_labels
from lodl.domains._domain import Domain, ModelShape
from lodl.domains._instances import Instances, Sizes, check_sizes, split_in_order
from lodl.domains._polynomial import check_noise, legacy_rng
from lodl.errors import InvalidInputError
from lodl.problems import LinearProblem

_MAX_NODES = 16
_BLOCK_SIZE = 2**20  # numbers in the table of least costs: 8 MB
_MIN_ROWS = 16  # predictions at once: fewer would waste the processor's vector units


def travelling_salesman(
    seed: int = 135,
    *,
    sizes: Sizes = (300, 100, 500),
    n_nodes: int = 10,
    n_features: int = 5,
    degree: int = 4,
    noise: float = 0.5,
) -> Domain:
    """Travelling salesman: visit all nodes and return, by the predicted costs of the edges.

    Data. Half of the 10 nodes lie uniformly in a square, the others around its centre. An instance
    has 5 features in all, x ~ N(0, I), and the cost of each of the 45 edges is its fixed length
    plus a polynomial of a random half of the features,

        y_j = length_j + (B_j x / sqrt(5) + 3)^degree / 3^(degree - 1) * e_j,

    rounded to four decimals, with B_jk zero or, equally likely, U[-2, 2], the same for all
    instances, and noise e_j ~ U[1 - noise, 1 + noise]. Edges are numbered by their first node, then
    by their second: (0, 1), (0, 2), ..., (8, 9). x has shape (n, 5), y has shape (n, 45), and there
    is no context.

    Model. Linear, from the 5 features to all 45 costs at once.

    Solver. `TravellingSalesman`: dynamic programming over sets of nodes (Held and Karp, 1962), for
    all predictions at once. Exact. In batches a call takes 40 µs for 10 nodes, 0.3 ms for 12 and
    10 ms for 15: `python speed/domains.py`. More than 16 nodes are refused: they need a solver for
    mixed integer programs with lazy constraints.

    Objective. The sum of the true costs of the edges on the tour, to be minimised.

    What is known, and where we differ. The data is that of PyEPO (Tang and Khalil, 2024), which
    gives the same features and costs for the same seed and the same number of instances in all; it
    is used there with 20 nodes. (PyEPO rounds costs to single precision.) The least-squares model
    has a relative test regret of 0.08 to 0.10, depending on the seed.

    Args:
        seed: Random seed for the data.
        sizes: Number of training, validation and test instances.
        n_nodes: Nodes, from 3 to 16.
        n_features: Features of an instance.
        degree: Degree of the polynomial.
        noise: Half width of the multiplicative noise.
    """
    problem, sizes, rng = TravellingSalesman(n_nodes), check_sizes(sizes), legacy_rng(seed)
    check_count("n_features", n_features)
    check_count("degree", degree)
    check_noise(noise)
    in_square = rng.uniform(-2, 2, size=(n_nodes // 2, 2))
    around_centre = rng.normal(size=(n_nodes - n_nodes // 2, 2))
    lengths = pdist(np.concatenate([in_square, around_centre]))
    shape = (problem.n_edges, n_features)
    matrix = rng.binomial(1, 0.5, size=shape) * rng.uniform(-2, 2, size=shape)
    x = rng.normal(size=(sum(sizes), n_features))
    y = (x @ matrix.T / np.sqrt(n_features) + 3) ** degree / 3 ** (degree - 1)
    y = lengths + y * rng.uniform(1 - noise, 1 + noise, size=y.shape)
    return Domain(
        problem=problem,
        splits=split_in_order(Instances(x, np.around(y, decimals=4)), sizes),
        model=ModelShape(n_features, n_outputs=problem.n_edges, hidden=(), output="identity"),
    )


@dataclass(frozen=True)
class TravellingSalesman(LinearProblem):
    """Visit N nodes, each once, and return.

        min_z  sum_e z_e y_e,   z the 0/1 vector of the edges on a tour

    A label has one cost for each of N (N - 1) / 2 edges, which may be gone along both ways, a
    decision is a vector of as many zeros and ones. Edges are numbered by their first node, then by
    their second. Costs may be negative. There is no context.

    Attributes:
        n_nodes: Number of nodes, from 3 to 16: time and memory more than double with each.
    """

    n_nodes: int = 10
    sense = "min"

    def __post_init__(self) -> None:
        check_count("n_nodes", self.n_nodes, minimum=3)
        if self.n_nodes > _MAX_NODES:
            raise InvalidInputError(
                f"`n_nodes` must be at most {_MAX_NODES}, got {self.n_nodes}: a larger tour needs "
                "a solver for mixed integer programs."
            )

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return self.n_nodes * (self.n_nodes - 1) // 2

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        if y_hats.shape[1:] != (self.n_edges,):
            raise InvalidInputError(
                f"A prediction must be a vector of {self.n_edges} costs, one per edge between "
                f"{self.n_nodes} nodes, got shape {y_hats.shape[1:]}."
            )
        zs = np.zeros(y_hats.shape)
        edge_of = _edges_between(self.n_nodes)
        rows = max(_MIN_ROWS, _BLOCK_SIZE // (self.n_nodes * 2 ** (self.n_nodes - 1)))
        for start in range(0, len(zs), rows):
            block = slice(start, start + rows)
            tours = _best_tours(y_hats[block].T[edge_of])
            edges = edge_of[tours, np.roll(tours, 1, axis=0)]
            zs[block][np.arange(tours.shape[1]), edges] = 1.0
        return zs


def _edges_between(n_nodes: int) -> npt.NDArray[np.intp]:
    """Return the number of the edge between two nodes, shape (N, N); 0 on the diagonal."""
    edge_of = np.zeros((n_nodes, n_nodes), dtype=np.intp)
    first, second = np.triu_indices(n_nodes, k=1)
    edge_of[first, second] = edge_of[second, first] = np.arange(len(first))
    return edge_of


def _best_tours(costs: Array) -> npt.NDArray[np.intp]:
    """Return the nodes of the cheapest tours in their order, shape (N, k).

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
