"""The domain: nodes, and edges whose costs depend on features."""

import numpy as np
from scipy.spatial.distance import pdist

from lodl._arrays import check_count
from lodl.domains import Domain, Split
from lodl.domains._domain import Sizes, check_noise, check_sizes, legacy_rng, split_in_order
from lodl_benchmarks.domains._travelling_salesman._problem import TravellingSalesman


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
    all predictions at once; from 15 nodes on HiGHS with constraints added as they are violated.
    Exact. In batches a call takes 40 µs for 10 nodes and 0.3 ms for 12; for 20 nodes it takes
    20 ms: `python speed/domains.py`.

    Objective. The sum of the true costs of the edges on the tour, to be minimised.

    What is known, and where we differ. The data is that of PyEPO (Tang and Khalil, 2024), which
    gives the same features and costs for the same seed and the same number of instances in all; it
    is used there with 20 nodes. (PyEPO rounds costs to single precision.) The least-squares model
    has a relative test regret of 0.08 to 0.10, depending on the seed.

    Args:
        seed: Random seed for the data.
        sizes: Number of training, validation and test instances.
        n_nodes: Nodes, at least 3.
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
    return Domain(problem, split_in_order(Split(x, np.around(y, decimals=4)), sizes))
