"""All paths across a small grid."""

import numpy as np

from lodl._typing import Array
from lodl.domains import ShortestPath


def all_paths(problem: ShortestPath) -> Array:
    """Return every path of a grid as a 0/1 vector of arcs, shape (n_paths, n_arcs)."""
    n_rows, n_columns = problem.grid
    ways: list[list[tuple[int, ...]]] = [[()]]  # paths to the nodes of a row, as arcs
    for row in range(n_rows):
        first = row * (2 * n_columns - 1)
        here: list[list[tuple[int, ...]]] = []
        for column in range(n_columns):
            found = ways[column] if row + column == 0 else []
            if row:
                found = [(*way, first - n_columns + column) for way in ways[column]]
            if column:
                found = found + [(*way, first + column - 1) for way in here[column - 1]]
            here.append(found)
        ways = here
    paths = np.zeros((len(ways[-1]), problem.n_arcs))
    for path, arcs in zip(paths, ways[-1], strict=True):
        path[list(arcs)] = 1.0
    return paths
