from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from lodl.domains import ShortestPath, shortest_path
from lodl.errors import InvalidInputError

GRIDS = pytest.mark.parametrize("grid", [(2, 2), (1, 4), (4, 1), (3, 5), (5, 3)])


def arcs_of(grid):
    """The arcs in PyEPO's order, as pairs of nodes."""
    rows, columns = grid
    arcs = []
    for row in range(rows):
        nodes = [row * columns + column for column in range(columns)]
        arcs += list(pairwise(nodes))
        if row < rows - 1:
            arcs += [(node, node + columns) for node in nodes]
    return arcs


def paths_of(grid):
    """All paths, each as a vector of zeros and ones."""
    rows, columns = grid
    arcs = arcs_of(grid)
    n_steps = rows + columns - 2
    for downs in combinations(range(n_steps), rows - 1):
        nodes = [0]
        for step in range(n_steps):
            nodes.append(nodes[-1] + (columns if step in downs else 1))
        yield [float(arc in set(pairwise(nodes))) for arc in arcs]


def by_linear_program(grid, costs):
    """The optimal value as a flow from the first to the last node."""
    arcs = arcs_of(grid)
    flow = np.zeros((grid[0] * grid[1], len(arcs)))
    for number, (start, end) in enumerate(arcs):
        flow[start, number], flow[end, number] = -1, 1
    demand = np.zeros(len(flow))
    demand[0], demand[-1] = -1, 1
    return linprog(costs, A_eq=flow, b_eq=demand, bounds=(0, 1)).fun


@GRIDS
def test_the_path_is_the_cheapest_of_all(grid):
    problem, paths = ShortestPath(grid), np.array(list(paths_of(grid)))
    y_hats = np.random.default_rng(0).normal(size=(50, problem.n_arcs))  # negative costs, too
    zs = problem.solve_many(y_hats)
    np.testing.assert_array_equal(zs, paths[(y_hats @ paths.T).argmin(axis=1)])


@settings(max_examples=50, deadline=None, derandomize=True)
@given(costs=st.lists(st.integers(0, 2).map(float), min_size=12, max_size=12))
def test_a_path_is_found_among_many_of_equal_cost(costs):
    problem, paths = ShortestPath((3, 3)), np.array(list(paths_of((3, 3))))
    z = problem.solve(np.array(costs), None)
    assert z.tolist() in paths.tolist()
    assert z @ costs == (paths @ costs).min()


@pytest.mark.parametrize("grid", [(12, 12), (30, 30)])
def test_the_cost_is_that_of_the_linear_program_on_large_grids(grid):
    domain = shortest_path(sizes=(3, 1, 1), grid=grid)
    problem, ys = ShortestPath(grid), domain.splits.train.y
    assert problem == domain.problem
    for y, z in zip(ys, problem.solve_many(ys), strict=True):
        assert problem.objective(z, y) == pytest.approx(by_linear_program(grid, y), rel=1e-9)


@pytest.mark.parametrize("grid", [(1, 1), (0, 3), (2.0, 2)])
def test_a_grid_must_have_two_nodes(grid):
    with pytest.raises(InvalidInputError, match="`grid` must"):
        ShortestPath(grid)


def test_a_prediction_must_have_a_cost_per_arc():
    with pytest.raises(InvalidInputError, match=r"a vector of 12 costs.*got shape \(11,\)"):
        ShortestPath((3, 3)).solve(np.zeros(11), None)
