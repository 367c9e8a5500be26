"""Larger tours: an integer program whose constraints are added as they are violated."""

import numpy as np
from scipy.optimize import LinearConstraint
from scipy.sparse.csgraph import connected_components

from lodl._typing import Array
from lodl_benchmarks.domains._binary_program import cheapest


def best_tour(y_hat: Array, n_nodes: int) -> Array:
    """Return the edges on the cheapest tour, shape (n_edges,).

    Two edges must meet at each node. Such edges form one tour or several; as long as there are
    several, a constraint is added for each, that its nodes must not be joined to a tour of their
    own (Dantzig, Fulkerson and Johnson, 1954).
    """
    first, second = np.triu_indices(n_nodes, k=1)
    node = np.arange(n_nodes)[:, np.newaxis]
    constraints = [LinearConstraint((node == first) | (node == second), lb=2, ub=2)]
    while True:
        z = cheapest(y_hat, constraints)
        graph = np.zeros((n_nodes, n_nodes))
        graph[first, second] = z
        n_tours, tour_of = connected_components(graph, directed=False)
        if n_tours == 1:
            return z
        tour = np.arange(n_tours)[:, np.newaxis]
        is_inside = (tour_of[first] == tour) & (tour_of[second] == tour)
        constraints.append(LinearConstraint(is_inside, ub=np.bincount(tour_of) - 1))
