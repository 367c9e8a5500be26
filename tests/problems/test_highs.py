from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

import lodl
from lodl.errors import InvalidInputError, OracleError, ProblemError, ShapeError
from lodl.oracle import Oracle
from lodl.problems.highs import LinearProgram, RecourseProgram
from lodl.samplers import AllPerturbed
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


def best_by_brute_force(values, capacity):
    subsets = np.array(list(product([0.0, 1.0], repeat=len(values))))
    fits = (subsets @ WEIGHTS.T <= capacity).all(axis=1)
    return (subsets[fits] @ values).max()


@pytest.mark.parametrize("context", [None, {"row_upper": np.array([6.0, 5.0])}, {"row_upper": 7}])
def test_the_knapsack_is_the_one_of_brute_force(context):
    capacity = CAPACITY if context is None else np.broadcast_to(context["row_upper"], 2)
    for values in RNG.random((5, 5)):
        z = KNAPSACK.solve(values, context)
        assert set(z) <= {0.0, 1.0}
        assert KNAPSACK.objective(z, values) == pytest.approx(best_by_brute_force(values, capacity))


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


def second_stage(order, demand):
    found = linprog([3, 4], A_ub=-np.eye(2), b_ub=order - demand)
    return order.sum() + found.fun


def test_recourse_is_what_scipy_finds_with_the_decision_fixed():
    for y_hat, y in RNG.uniform(0, 8, (5, 2, 2)):
        order = NEWSVENDOR.solve(y_hat)
        assert NEWSVENDOR.objective(order, y) == pytest.approx(second_stage(order, y))
    dear = {"costs": np.array([1, 1, 6, 8])}
    assert NEWSVENDOR.objective(np.zeros(2), np.ones(2), dear) == pytest.approx(14)


def test_a_decision_without_recourse_that_the_truth_forbids_names_the_pattern():
    stiff = RecourseProgram(
        LinearProgram([[1, 1]], "min", costs=[1, 2]), predicted="row_lower", first_stage=[0, 1]
    )
    with pytest.raises(ProblemError, match=r"infeasible.*Give the model recourse"):
        stiff.objective(stiff.solve(np.array([1.0])), np.array([2.0]))


@pytest.mark.parametrize(
    ("problem", "y"),
    [
        (KNAPSACK, RNG.random((3, 5))),
        (ASSIGNMENT, RNG.random((3, 3, 3))),
        (NEWSVENDOR, RNG.uniform(1, 8, (3, 2))),
    ],
    ids=["knapsack", "assignment", "newsvendor"],
)
def test_the_contract_is_kept(problem, y):
    assert check_problem(problem, y).is_affine == isinstance(problem, lodl.LinearProblem)


def test_workers_threads_and_a_store_give_the_same_answers(tmp_path):
    y = RNG.random((4, 5))
    context = [{"row_upper": np.full(2, c)} for c in (6.0, 7.0, 8.0, 9.0)]
    asked = {"context": context, "sampler": AllPerturbed(0.5), "slopes": True}
    here = Oracle(KNAPSACK).sample(y, n_samples=6, **asked)
    with ThreadPoolExecutor(2) as threads:
        runs = [
            Oracle(KNAPSACK, n_jobs=2, store=tmp_path / "store").sample(y, n_samples=3, **asked),
            Oracle(KNAPSACK, n_jobs=2, store=tmp_path / "store").sample(y, n_samples=6, **asked),
            Oracle(KNAPSACK, executor=threads).sample(y, n_samples=6, **asked),
        ]
    for run in runs:
        np.testing.assert_array_equal(run[2].regret, here[2].regret[: run.n_samples])
    assert (here[2].regret >= 0).all()


def test_failed_calls_carry_the_status_of_highs():
    infeasible = {"row_lower": np.array([1e3, 0.0])}
    with pytest.raises(OracleError, match=r"instance 0, the label itself.*infeasible"):
        Oracle(KNAPSACK).sample(RNG.random((1, 5)), AllPerturbed(1), 1, context=[infeasible])
    with pytest.raises(ProblemError, match="unbounded"):
        LinearProgram([[1, -1]], "max", row_upper=1).solve(np.ones(2))
    slow = LinearProgram(
        RNG.integers(0, 100, (5, 50)), "min", row_lower=1205, row_upper=1205, upper=1,
        integrality=1, options={"time_limit": 0.0},
    )  # fmt: skip
    with pytest.raises(ProblemError, match=r"[Tt]ime limit"):
        slow.solve(RNG.random(50))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LinearProgram(WEIGHTS, "best"), '`sense` of LinearProgram must be "min" or "max"'),
        (lambda: LinearProgram(WEIGHTS, "min", upper=[1, 2]), r"`upper`.* shape \(5,\), got.*\(2,"),
        (lambda: LinearProgram(WEIGHTS, "min", lower=np.nan), "`lower` must not have NaN"),
        (lambda: LinearProgram(WEIGHTS, "min", predicted=[5]), "between 0 and 4"),
        (lambda: LinearProgram(WEIGHTS, "min", predicted=[1, 1]), "distinct whole numbers"),
        (lambda: KNAPSACK.solve(np.ones(5), {"budget": 3}), "among 'A',.*got a dict.*'budget'"),
        (lambda: KNAPSACK.solve(np.ones(5), np.ones(2)), "must be a dict of arrays.*got a ndarray"),
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
