from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from lodl.domains import Newsvendor, newsvendor
from lodl.errors import InvalidInputError
from lodl.oracle import Oracle


def regrets(problem, y_hats, y, context=None):
    """Return the regrets of many predictions for one instance."""
    contexts = None if context is None else [context]
    return Oracle(problem).regret(np.asarray(y_hats)[:, None], y[None], context=contexts)[:, 0]


TWO = Newsvendor(10.0, price=(1.0, 2.0), missing=(1.5, 4.0), left_over=(0.5, 1.0))


def by_linear_program(problem, y_hat):
    """The least cost over orders, missing and left-over units."""
    n = len(y_hat)
    costs = np.concatenate([problem.price, problem.missing, -np.array(problem.left_over)])
    return linprog(
        costs,
        A_ub=[[*problem.price, *[0.0] * (2 * n)]],
        b_ub=[problem.budget],
        A_eq=np.hstack([np.eye(n), np.eye(n), -np.eye(n)]),  # ordered + missing - left over
        b_eq=y_hat,
    ).fun


@pytest.mark.parametrize("budget_share", [0.3, 1.0, 5.0])
def test_the_order_is_the_cheapest(budget_share):
    domain = newsvendor(sizes=(20, 1, 1))
    problem: Any = domain.problem
    problem = replace(problem, budget=budget_share * problem.budget)
    y_hats = domain.splits.train.y
    for y_hat, z in zip(y_hats, problem.solve_many(y_hats), strict=True):
        assert (z >= 0).all()
        assert z @ problem.price <= problem.budget * (1 + 1e-12)
        expected = by_linear_program(problem, y_hat)
        assert problem.objective(z, y_hat) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("y_hat", "z"),
    [
        ([2.0, 3.0], [2.0, 3.0]),  # the budget pays for all
        ([2.0, 4.5], [1.0, 4.5]),  # the second saves more for its money
        ([2.0, 9.0], [0.0, 5.0]),
        ([-1.0, 3.0], [0.0, 3.0]),  # no demand is less than none
    ],
)
def test_the_budget_goes_to_the_largest_saving(y_hat, z):
    np.testing.assert_allclose(TWO.solve(np.array(y_hat)), z)


@pytest.mark.parametrize(
    ("y", "cost"),
    [([2.0, 3.0], 8.0), ([3.0, 3.0], 8.0 + 1.5), ([2.0, 1.0], 8.0 - 2 * 1.0)],
)
def test_what_is_missing_is_bought_and_what_is_left_over_is_sold(y, cost):
    assert TWO.objective(np.array([2.0, 3.0]), np.array(y)) == pytest.approx(cost)


def test_no_prediction_beats_the_label():
    domain = newsvendor(sizes=(5, 1, 1))
    y_hats = np.random.default_rng(0).uniform(0, 30, size=(200, 20))
    for y in domain.splits.train.y:
        assert regrets(domain.problem, y_hats, y).min() >= 0


@pytest.mark.parametrize("changes", [{"price": (1.0, 4.0)}, {"left_over": (-0.1, 1.0)}])
def test_prices_must_rise(changes):
    prices = {"price": TWO.price, "missing": TWO.missing, "left_over": TWO.left_over} | changes
    with pytest.raises(InvalidInputError, match="must rise from `left_over` to `price`"):
        Newsvendor(10.0, **prices)


def test_the_budget_must_be_positive():
    with pytest.raises(InvalidInputError, match="`budget` must be a number above 0, got"):
        Newsvendor(0.0, TWO.price, TWO.missing, TWO.left_over)


def test_a_prediction_must_have_a_demand_per_product():
    with pytest.raises(InvalidInputError, match=r"a vector of 2 demands, got shape \(3,\)"):
        TWO.solve(np.ones(3))
