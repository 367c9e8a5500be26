"""The problem: visit all nodes and return, at the least cost."""

from dataclasses import dataclass

import numpy as np

from lodl._arrays import check_count, check_labels
from lodl._typing import Array, InstanceContext
from lodl.errors import InvalidInputError
from lodl.problems import LinearProblem
from lodl_benchmarks.domains._travelling_salesman._dynamic_program import best_tours
from lodl_benchmarks.domains._travelling_salesman._lazy_constraints import best_tour

_MOST_NODES_AT_ONCE = 14  # time and memory of the dynamic program more than double with each


@dataclass(frozen=True)
class TravellingSalesman(LinearProblem):
    """Visit N nodes, each once, and return.

        min_z  sum_e z_e y_e,   z the 0/1 vector of the edges on a tour

    A label has one cost for each of N (N - 1) / 2 edges, which can be travelled both ways, a
    decision is a vector of as many zeros and ones. Edges are numbered by their first node, then by
    their second. Costs may be negative. There is no context.

    Exact: dynamic programming up to 14 nodes, beyond that HiGHS, one prediction at a time.

    Attributes:
        n_nodes: Number of nodes, at least 3.
    """

    n_nodes: int = 10
    sense = "min"

    def __post_init__(self) -> None:
        check_count("n_nodes", self.n_nodes, minimum=3)

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
        if self.n_nodes <= _MOST_NODES_AT_ONCE:
            return best_tours(y_hats, self.n_nodes)
        return np.array([best_tour(y_hat, self.n_nodes) for y_hat in y_hats])
