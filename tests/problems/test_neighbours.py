from itertools import combinations

import numpy as np
import pytest

import lodl
from lodl.errors import ProblemError
from lodl.problems.highs import LinearProgram

RNG = np.random.default_rng(0)


class Rounded(LinearProgram):
    """A program whose `solve` is not the one that `neighbours` knows."""

    def solve(self, y_hat, context=None):
        return np.round(super().solve(y_hat, context))


# Transport from two plants to three customers: demands are the context.
TRANSPORT = LinearProgram(
    np.concatenate([np.kron(np.eye(2), np.ones(3)), np.kron(np.ones(2), np.eye(3))]), "min"
)
PRODUCTION = LinearProgram(RNG.uniform(0.5, 3, (3, 6)), "max", row_upper=[8, 7, 9], upper=2)


def demands(*numbers):
    low, high = np.r_[-np.inf, -np.inf, numbers], np.r_[9.0, 8.0, numbers]
    return {"row_lower": low, "row_upper": high}


def vertices(program, context=None):
    """Return all vertices by brute force: each choice of as many binding bounds as variables."""
    given = program._arrays.of(context)
    matrix = given["A"].toarray()
    n = matrix.shape[1]
    rows = np.concatenate([np.eye(n), matrix])
    low = np.r_[given["lower"], given["row_lower"]]
    high = np.r_[given["upper"], given["row_upper"]]
    found = []
    for active in map(list, combinations(range(len(rows)), n)):
        if np.linalg.matrix_rank(rows[active]) < n:
            continue
        ends = [sorted({low[i], high[i]} - {-np.inf, np.inf}) for i in active]
        for bounds in np.stack(np.meshgrid(*ends), axis=-1).reshape(-1, n):
            x = np.linalg.solve(rows[active], bounds)
            if (rows @ x >= low - 1e-9).all() and (rows @ x <= high + 1e-9).all():
                found.append(x)
    return np.unique(np.round(found, 6), axis=0)


@pytest.mark.parametrize(
    ("program", "context"), [(TRANSPORT, demands(3.0, 4.0, 5.5)), (PRODUCTION, None)]
)
def test_neighbours_are_vertices_and_the_first_is_the_decision(program, context):
    known = vertices(program, context)
    for _ in range(5):
        y = RNG.uniform(1, 3, 6)
        zs = program.neighbours(y, context)
        np.testing.assert_allclose(zs[0], program.solve(y, context), atol=1e-7)
        assert len(zs) > 3
        assert len(np.unique(np.round(zs, 6), axis=0)) == len(zs)
        for z in zs:
            assert np.abs(known - z).max(axis=1).min() < 1e-5


def test_every_vertex_on_an_edge_is_found_where_none_is_degenerate():
    y = RNG.uniform(1, 3, 6)
    zs = PRODUCTION.neighbours(y)
    assert len(zs) == 1 + 6  # a simple polytope of six dimensions has six edges at a vertex
    extra = (zs[0] - zs) @ y
    assert (np.diff(extra[1:]) >= -1e-9).all()  # the nearest first
    assert (extra[1:] > 0).all()


def test_a_degenerate_vertex_is_not_its_own_neighbour():
    # Two of three constraints would do to make the corner (1, 1).
    program = LinearProgram([[1, 1], [1, 0], [0, 1]], "max", row_upper=[2, 1, 1])
    zs = program.neighbours(np.array([1.0, 2.0]))
    np.testing.assert_allclose(zs[0], [1, 1])
    assert (np.abs(zs[1:] - zs[0]).max(axis=1) > 0.5).all()


def test_known_costs_count_and_decisions_keep_the_shape_of_labels():
    square = LinearProgram(
        np.concatenate([np.kron(np.eye(3), np.ones(3)), np.kron(np.ones(3), np.eye(3))])[:5],
        "min",
        row_lower=1,
        row_upper=1,
    )
    assert square.neighbours(RNG.random((3, 3))).shape[1:] == (3, 3)
    known = LinearProgram(
        [[1, 1, 1]], "min", row_lower=1, upper=1, costs=[9, 0, 0], predicted=[1, 2]
    )
    np.testing.assert_allclose(known.neighbours(np.array([2.0, 1.0])), np.eye(3)[[2, 1, 0]])


def test_whole_numbers_and_other_solvers_have_no_neighbours():
    knapsack = LinearProgram([[3, 4, 5]], "max", row_upper=8, upper=1, integrality=1)
    assert TRANSPORT.has_neighbours(demands(10.0, 1.0, 1.0))
    assert not knapsack.has_neighbours(None)
    assert not Rounded([[3, 4, 5]], "max", row_upper=8).has_neighbours(None)
    relaxed = LinearProgram([[3, 4, 5]], "max", row_upper=8, upper=1)
    assert relaxed.has_neighbours(None)
    assert not relaxed.has_neighbours({"integrality": 1})
    zs = relaxed.neighbours(np.array([1.0, 3.0, 3.5]), {"integrality": 1})
    np.testing.assert_array_equal(zs, [[1, 0, 1]])


def test_an_infeasible_program_says_so():
    with pytest.raises(ProblemError, match="HiGHS found no decision"):
        TRANSPORT.neighbours(np.ones(6), demands(30.0, 1.0, 1.0))


def test_a_problem_without_neighbours_says_so():
    with pytest.raises(NotImplementedError, match="TopK has no `neighbours`"):
        lodl.domains.TopK(1).neighbours(np.ones(3), None)
