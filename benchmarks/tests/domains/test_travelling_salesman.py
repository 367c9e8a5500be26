from itertools import combinations, permutations

import numpy as np
import pytest

from lodl.errors import InvalidInputError
from lodl_benchmarks.domains import TravellingSalesman


def tours_of(n_nodes):
    """All tours, each as a vector of zeros and ones."""
    edges = list(combinations(range(n_nodes), 2))
    for order in permutations(range(1, n_nodes)):
        steps = zip((0, *order), (*order, 0), strict=True)
        on_tour = {tuple(sorted(step)) for step in steps}
        yield [float(edge in on_tour) for edge in edges]


@pytest.mark.parametrize("n_nodes", [3, 4, 6, 7])
def test_the_tour_is_the_cheapest_of_all(n_nodes):
    problem, tours = TravellingSalesman(n_nodes), np.array(list(tours_of(n_nodes)))
    y_hats = np.random.default_rng(0).normal(size=(20, problem.n_edges))  # negative costs, too
    zs = problem.solve_many(y_hats)
    np.testing.assert_array_equal(zs, tours[(y_hats @ tours.T).argmin(axis=1)])


def test_many_predictions_are_solved_in_blocks_without_a_trace():
    problem = TravellingSalesman(10)
    y_hats = np.random.default_rng(0).random((300, 45))
    together = problem.solve_many(y_hats)
    for at in (0, 150, 299):
        np.testing.assert_array_equal(together[at], problem.solve(y_hats[at], None))


def test_a_tour_of_nodes_on_a_circle_goes_around():
    angle = 2 * np.pi * np.arange(12) / 12
    points = np.exp(1j * angle)
    edges = list(combinations(range(12), 2))
    y = np.array([abs(points[i] - points[j]) for i, j in edges])
    z = TravellingSalesman(12).solve(y, None)
    assert [edge for edge, on in zip(edges, z, strict=True) if on] == [
        (0, 1),
        (0, 11),
        *((i, i + 1) for i in range(1, 11)),
    ]


def test_a_tour_of_14_nodes_on_a_line_goes_there_and_back():
    y = np.array([float(j - i) for i, j in combinations(range(14), 2)])
    problem = TravellingSalesman(14)
    assert problem.objective(problem.solve(y, None), y) == 2 * 13


def test_a_tour_must_have_three_to_fourteen_nodes():
    with pytest.raises(InvalidInputError, match="`n_nodes` must be a whole number of at least 3"):
        TravellingSalesman(2)
    with pytest.raises(InvalidInputError, match="`n_nodes` must be at most 14, got 15"):
        TravellingSalesman(15)


def test_a_prediction_must_have_a_cost_per_edge():
    with pytest.raises(InvalidInputError, match=r"a vector of 6 costs.*got shape \(5,\)"):
        TravellingSalesman(4).solve(np.zeros(5), None)
