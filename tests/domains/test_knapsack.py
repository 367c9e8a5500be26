from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from lodl.domains import Knapsack, item_knapsack, knapsack
from lodl.errors import InvalidInputError


def packings_that_fit(weights, capacity):
    packings = np.array(list(product([0.0, 1.0], repeat=weights.shape[1])))
    return packings[(packings @ weights.T <= np.array(capacity) + 1e-9).all(axis=1)]


def in_rows(weights):
    return tuple(map(tuple, weights.tolist()))


WHOLE = np.random.default_rng(0).integers(1, 9, size=(1, 9)).astype(float)
FRACTIONS = np.random.default_rng(1).integers(300, 800, size=(2, 9)) / 100
METHODS = pytest.mark.parametrize(
    ("weights", "capacity", "max_subsets"),
    [
        pytest.param(WHOLE, (17.5,), 100_000, id="dynamic program"),
        pytest.param(WHOLE, (3.0,), 100_000, id="dynamic program, heavy items"),
        pytest.param(WHOLE, (1e12,), 100_000, id="dynamic program, room for all"),
        pytest.param(1e9 * WHOLE, (17.5e9,), 100_000, id="subsets, weights too large for a table"),
        pytest.param(FRACTIONS[:1], (20.0,), 100_000, id="subsets"),
        pytest.param(FRACTIONS, (20.0, 15.0), 100_000, id="subsets of two dimensions"),
        pytest.param(FRACTIONS, (20.0, 15.0), 10, id="HiGHS"),
    ],
)


@METHODS
def test_the_packing_is_the_best_of_all(weights, capacity, max_subsets):
    problem, packings = (
        Knapsack(capacity, in_rows(weights), max_subsets),
        packings_that_fit(weights, capacity),
    )
    y_hats = np.random.default_rng(2).normal(1, 2, size=(40, 9))  # negative values, too
    zs = problem.solve_many(y_hats)
    np.testing.assert_array_equal(zs, packings[(y_hats @ packings.T).argmax(axis=1)])


@METHODS
def test_weights_may_come_as_context(weights, capacity, max_subsets):
    y_hats = np.random.default_rng(3).normal(1, 2, size=(5, 9))
    fixed = Knapsack(capacity, in_rows(weights), max_subsets)
    by_context = Knapsack(capacity, max_subsets=max_subsets)
    expected = fixed.solve_many(y_hats)
    np.testing.assert_array_equal(by_context.solve_many(y_hats, weights), expected)
    if len(weights) == 1:
        np.testing.assert_array_equal(by_context.solve_many(y_hats, weights[0]), expected)


@METHODS
def test_a_decision_does_not_depend_on_its_neighbours(weights, capacity, max_subsets):
    problem = Knapsack(capacity, in_rows(weights), max_subsets)
    y_hats = np.random.default_rng(4).integers(0, 4, size=(20, 9)).astype(float)  # many ties
    alone = [problem.solve(y_hat, None) for y_hat in y_hats]
    np.testing.assert_array_equal(problem.solve_many(y_hats), alone)


def test_many_predictions_are_solved_in_blocks_without_a_trace():
    for domain in (knapsack(sizes=(3000, 1, 1)), item_knapsack(sizes=(1, 1, 1))):
        part = domain.splits.train
        context = None if part.context is None else part.context[0]
        y_hats = np.random.default_rng(0).normal(5, 2, size=(3000, part.y.shape[1]))
        together = domain.problem.solve_many(y_hats, context)
        for at in (0, 1499, 2999):
            np.testing.assert_array_equal(together[at], domain.problem.solve(y_hats[at], context))


@pytest.mark.parametrize(("n_items", "n_dimensions"), [(16, 2), (32, 1), (32, 2)])
def test_the_value_is_that_of_a_mixed_integer_program(n_items, n_dimensions):
    domain = knapsack(sizes=(5, 1, 1), n_items=n_items, n_dimensions=n_dimensions)
    problem: Any = domain.problem
    for y in domain.splits.train.y:
        found = milp(
            -y,
            constraints=LinearConstraint(problem.weights, ub=20.0),
            integrality=np.ones(n_items),
            bounds=Bounds(0, 1),
        )
        assert problem.objective(problem.solve(y, None), y) == pytest.approx(-found.fun)


def test_a_set_that_fills_the_capacity_fits_in_spite_of_rounding():
    problem = Knapsack((0.3,), ((0.1, 0.1, 0.1, 0.2),))  # 0.1 + 0.1 + 0.1 > 0.3 in floating point
    np.testing.assert_array_equal(problem.solve(np.array([1.0, 1.0, 1.0, 1.5]), None), [1, 1, 1, 0])


@pytest.mark.parametrize(
    ("problem", "context", "message"),
    [
        (Knapsack((5.0,)), None, "A knapsack needs weights"),
        (Knapsack((5.0,)), [1.0, 2.0], r"must have shape \(1, 3\).*got shape \(1, 2\)"),
        (Knapsack((5.0, 5.0)), [1.0, 2.0, 3.0], r"must have shape \(2, 3\)"),
        (Knapsack((5.0,)), [1.0, 0.0, 3.0], "must be positive numbers"),
        (Knapsack((5.0,)), [1.0, np.nan, 3.0], "must be positive numbers"),
    ],
)
def test_weights_that_do_not_fit_the_prediction_are_refused(problem, context, message):
    with pytest.raises(InvalidInputError, match=message):
        problem.solve(np.ones(3), context)


def test_capacities_must_be_positive():
    with pytest.raises(InvalidInputError, match="`capacity` must be positive numbers"):
        Knapsack((0.0,))
