import numpy as np
import pytest
from scipy.sparse import csr_array

from lodl.errors import InvalidInputError, ProblemError, ShapeError
from lodl.problems.highs import LinearProgram, RecourseProgram
from lodl.testing import check_problem

RNG = np.random.default_rng(0)
WEIGHTS = np.array([[3.0, 4.0, 5.0, 2.0, 6.0], [1.0, 5.0, 2.0, 4.0, 3.0]])
CAPACITY = np.array([9.0, 8.0])
KNAPSACK = LinearProgram(WEIGHTS, "max", row_upper=CAPACITY, upper=1, integrality=1)
ASSIGNMENT = LinearProgram(
    np.concatenate([np.kron(np.eye(3), np.ones(3)), np.kron(np.ones(3), np.eye(3))]),
    "min",
    row_lower=1,
    row_upper=1,
)
# z is ordered at 1, what is missing is bought at 3, within a shelf of 10.
NEWSVENDOR = RecourseProgram(
    LinearProgram(
        [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]],
        "min",
        row_upper=[np.inf, np.inf, 10],
        costs=[1, 1, 3, 4],
    ),
    predicted="row_lower",
    rows=[0, 1],
    first_stage=[0, 1],
)


def test_a_matrix_of_costs_gives_a_matrix_of_decisions():
    costs = RNG.random((3, 3))
    z = ASSIGNMENT.solve(costs)
    assert z.shape == (3, 3)
    np.testing.assert_allclose(z.sum(axis=0), 1)
    np.testing.assert_array_equal(ASSIGNMENT.slope(z, costs), z)


def test_a_sparse_matrix_is_the_same_program():
    sparse = LinearProgram(csr_array(WEIGHTS), "max", row_upper=9, upper=1, integrality=1)
    dense = LinearProgram(WEIGHTS, "max", row_upper=9, upper=1, integrality=1)
    values = RNG.random(5)
    np.testing.assert_array_equal(sparse.solve(values), dense.solve(values))


def test_some_costs_are_predicted_and_others_known():
    # Opening (known cost) lets goods be sold at predicted prices.
    problem = LinearProgram(
        [[-4.0, 1.0, 1.0]], "max", row_upper=0, upper=[1, 3, 3], integrality=[1, 0, 0],
        costs=[-5.0, 0, 0], predicted=[1, 2],
    )  # fmt: skip
    y = np.array([2.0, 1.0])
    z = problem.solve(y)
    np.testing.assert_allclose(z, [1, 3, 1])
    assert problem.objective(z, y) == pytest.approx(2.0)
    np.testing.assert_allclose(problem.solve(np.array([1.0, 1.0])), 0)
    np.testing.assert_allclose(problem.slope(z, y), [3, 1])
    assert check_problem(problem, RNG.random((3, 2)) + 1).is_affine


def test_a_matrix_of_costs_keeps_the_contract_of_a_problem():
    assert check_problem(ASSIGNMENT, RNG.random((3, 3, 3))).is_affine


def test_a_context_changes_the_costs_of_the_recourse():
    dear = {"costs": np.array([1, 1, 6, 8])}
    assert NEWSVENDOR.objective(np.zeros(2), np.ones(2), dear) == pytest.approx(14)


def test_an_unbounded_program_is_a_failed_call():
    with pytest.raises(ProblemError, match="unbounded"):
        LinearProgram([[1, -1]], "max", row_upper=1).solve(np.ones(2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LinearProgram(WEIGHTS, "best"), '`sense` of LinearProgram must be "min" or "max"'),
        (lambda: LinearProgram(WEIGHTS, "min", upper=[1, 2]), r"`upper`.* shape \(5,\), got.*\(2,"),
        (lambda: LinearProgram(WEIGHTS, "min", lower=np.nan), "`lower` must not have NaN"),
        (lambda: LinearProgram(WEIGHTS, "min", predicted=[5]), "between 0 and 4"),
        (lambda: LinearProgram(WEIGHTS, "min", predicted=[1, 1]), "distinct whole numbers"),
        (lambda: KNAPSACK.solve(np.ones(5), {"A": np.ones((2, 4))}), r"`A` must have shape \(2, 5"),
        (lambda: KNAPSACK.solve(np.ones(4)), r"must have 5 costs, got shape \(4,\)"),
        (lambda: NEWSVENDOR.solve(np.ones(3)), r"must have 2 right-hand sides, got shape \(3,\)"),
        (
            lambda: RecourseProgram(KNAPSACK, predicted="rows", first_stage=[0]),
            '`predicted` must be "row_lower"',
        ),
        (
            lambda: RecourseProgram(NEWSVENDOR, predicted="both", first_stage=[0]),
            "`program` must be a `LinearProgram`",
        ),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises((InvalidInputError, ShapeError, ProblemError), match=message):
        call()
