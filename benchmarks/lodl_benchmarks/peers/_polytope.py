"""Facts about the polytope of paths across a grid, for methods that need no solver in the loop."""

from typing import Any

import numpy as np

from lodl._typing import Array
from lodl.domains import ShortestPath
from lodl_benchmarks.domains import all_paths


def adjacent_vertices(problem: Any, y: Array) -> Array:
    """Return z* - z for the paths z next to the best path z* of each label, shape (n, k, D).

    Two paths are adjacent if they part and meet again once: then no other path consists of their
    arcs. Rows of zeros fill up the paths with fewer neighbours.
    """
    paths, best = _paths(problem, y)
    apart = [np.flatnonzero([_part_once(problem, z, other) for other in paths]) for z in paths]
    steps = np.zeros((len(paths), max(map(len, apart)), paths.shape[1]))
    for step, z, rows in zip(steps, paths, apart, strict=True):
        step[: len(rows)] = z - paths[rows]
    return np.asarray(steps[best])


def binding_normals(problem: Any, y: Array) -> Array:
    """Return normals of the constraints that bind at the best path of each label, (n, k, D).

    Constraints are those of PyEPO's path model as PyEPO's cone needs them, as `a z <= b`: the flow
    of every node, in both directions, and no negative arc. -y is in the cone of these normals.
    """
    paths, best = _paths(problem, y)
    flow = _flow(problem)
    fixed = np.concatenate([flow, -flow])
    normals = [np.concatenate([fixed, np.diag(np.where(z == 0, -1.0, 0.0))]) for z in paths]
    return np.asarray(np.stack(normals)[best])


def _paths(problem: ShortestPath, y: Array) -> tuple[Array, Any]:
    """Return all paths, and the position of each label's best one."""
    paths = all_paths(problem)
    best = np.asarray(problem.solve_many(y, None))
    return paths, (best @ paths.T).argmax(axis=1)  # all paths have as many arcs


def _part_once(problem: ShortestPath, z: Array, other: Array) -> bool:
    """Return whether two paths part exactly once: at one node arcs of both leave that differ."""
    leaving = np.maximum(_flow(problem), 0)
    is_apart = np.abs(leaving * (z - other)).sum(axis=1) > 0  # both leave the node, or one does
    is_on_both = (leaving @ z > 0) & (leaving @ other > 0)
    return int((is_apart & is_on_both).sum()) == 1


def _flow(problem: ShortestPath) -> Array:
    """Return the incidence of nodes and arcs: 1 where an arc leaves a node, -1 where it enters."""
    n_rows, n_columns = problem.grid
    flow = np.zeros((n_rows * n_columns, problem.n_arcs))
    for row in range(n_rows):
        first = row * (2 * n_columns - 1)  # arcs to the right, then arcs down
        for column in range(n_columns):
            node = row * n_columns + column
            if column + 1 < n_columns:
                flow[node, first + column], flow[node + 1, first + column] = 1, -1
            if row + 1 < n_rows:
                down = first + n_columns - 1 + column
                flow[node, down], flow[node + n_columns, down] = 1, -1
    return flow
