"""Treatments within a budget: decisions against brute force and linear programming."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from lodl.errors import InvalidInputError
from lodl.oracle import Oracle
from lodl_benchmarks.domains import Budget, Cut, cut_of, steps_of

COSTS = (1.0, 2.0, 4.0)


def effects_of(seed, n):
    return np.random.default_rng(seed).normal(0.5, 1.0, size=(n, len(COSTS)))


def relaxed_optimum(y, budget):
    """The value with treatments in part, by HiGHS."""
    n = len(y)
    limits = np.vstack([np.kron(np.eye(n), np.ones(len(COSTS))), np.tile(COSTS, n)])
    found = linprog(-y.ravel(), A_ub=limits, b_ub=[*np.ones(n), budget], bounds=(0, 1))
    return -found.fun


def optimum(y, budget):
    """The value of the best of all decisions."""
    best = 0.0
    for choice in product(range(-1, len(COSTS)), repeat=len(y)):
        taken = [(row, treatment) for row, treatment in enumerate(choice) if treatment >= 0]
        if sum(COSTS[treatment] for _, treatment in taken) <= budget:
            best = max(best, sum(y[place] for place in taken))
    return best


@pytest.mark.parametrize("seed", range(20))
def test_a_decision_lacks_at_most_one_step_of_the_best_one(seed):
    y, budget = effects_of(seed, 5), 0.5 + seed / 2
    z = Budget(COSTS).solve(y, budget)
    largest_step = (steps_of(y, np.array(COSTS)).value * steps_of(y, np.array(COSTS)).extra).max()
    best = optimum(y, budget)
    assert best - largest_step - 1e-9 <= (z * y).sum() <= best + 1e-9


@pytest.mark.parametrize("budget", [0.0, 3.0, 40.5, 90.0, 1e4])
def test_spending_is_within_the_budget_and_the_value_within_one_step_of_the_relaxation(budget):
    y = effects_of(1, 100)
    z = Budget(COSTS).solve(y, budget)
    steps = steps_of(y, np.array(COSTS))
    cut = cut_of(steps, budget)
    bound = relaxed_optimum(y, budget)
    assert set(z.sum(axis=1)) <= {0.0, 1.0}
    assert (z @ COSTS).sum() <= budget
    assert bound - cut.price * max(COSTS) - 1e-9 <= (z * y).sum() <= bound + 1e-9
    if cut.price > 0:  # the next step does not fit
        assert (z @ COSTS).sum() > budget - max(COSTS)


def test_the_price_falls_as_the_budget_grows_and_is_zero_when_everything_is_paid():
    steps = steps_of(effects_of(2, 300), np.array(COSTS))
    prices = [cut_of(steps, budget).price for budget in range(0, 1200, 10)]
    assert prices == sorted(prices, reverse=True)
    assert prices[-1] == 0.0


def test_at_a_price_everybody_gets_the_treatment_of_most_effect_less_its_price():
    y, price = effects_of(3, 2000), 0.37
    chosen = steps_of(y, np.array(COSTS)).chosen(Cut(price, 0))
    net = np.column_stack([np.zeros(len(y)), y - price * np.array(COSTS)])
    np.testing.assert_array_equal(chosen, net.argmax(axis=1) - 1)


def test_equal_customers_are_served_in_their_order():
    z = Budget(COSTS).solve(np.tile([1.0, 1.5, 2.0], (6, 1)), 4.0)
    np.testing.assert_array_equal(z @ COSTS, [1, 1, 1, 1, 0, 0])


def test_costs_that_are_not_exact_are_paid_by_their_sum():
    z = Budget((0.1,)).solve(np.ones((3, 1)), 0.3)
    assert z.sum() == 3


def test_a_batch_of_predictions_has_the_decisions_of_each():
    y_hats = np.random.default_rng(4).normal(size=(7, 50, 3))
    together = Budget(COSTS).solve_many(y_hats, 20.0)
    np.testing.assert_array_equal(together, [Budget(COSTS).solve(y, 20.0) for y in y_hats])


def test_noise_adds_a_constant_to_regret_and_does_not_change_which_model_is_better():
    rng, problem = np.random.default_rng(5), Budget(COSTS)
    y = effects_of(6, 200)
    y_hats = np.stack([y + 0.3 * rng.normal(size=y.shape), y + 2.0 * rng.normal(size=y.shape)])
    noisy = y + rng.normal(size=(400, *y.shape))
    context = [60.0]
    levels = Oracle(problem, progress=False).regret(y_hats[:, None], y[None], context=context)
    gap = float(levels[1, 0] - levels[0, 0])
    zs = problem.solve_many(y_hats, 60.0)
    gaps = (noisy * (zs[0] - zs[1])).sum(axis=(1, 2))
    best = (noisy * problem.solve_many(noisy[:1], 60.0)).sum(axis=(1, 2))
    assert gaps.mean() == pytest.approx(gap, abs=4 * gaps.std() / 20)
    assert best[0] > (problem.solve(y, 60.0) * y).sum()  # which no decision can be worth


def test_wrong_costs_predictions_and_budgets_are_refused():
    with pytest.raises(InvalidInputError, match="`costs` must be positive"):
        Budget((1.0, 0.0))
    with pytest.raises(InvalidInputError, match="a column per treatment"):
        Budget(COSTS).solve(np.ones((4, 2)), 3.0)
    with pytest.raises(InvalidInputError, match="must be a budget of at least 0, got None"):
        Budget(COSTS).solve(np.ones((4, 3)), None)
    assert Budget(COSTS).describe(np.eye(3)) == "treats 1 by 0, 1 by 1, 1 by 2"
