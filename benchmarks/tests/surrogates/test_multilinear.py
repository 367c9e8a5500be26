import numpy as np
import pytest
import torch

from lodl.errors import InvalidInputError
from lodl_benchmarks.domains import WebAdvertising
from lodl_benchmarks.surrogates import MultilinearRelaxation
from lodl_benchmarks.surrogates._multilinear import _project

CONVERGED = MultilinearRelaxation(budget=2, gamma=0.02, n_steps=400)


@pytest.fixture
def click_rates():
    generator = torch.Generator().manual_seed(0)
    return 0.2 * torch.rand(2, 3, 5, 4, dtype=torch.float64, generator=generator)


def assert_gradient_is_that_of_finite_differences(y_hat):
    """Like `gradcheck`, but all perturbed predictions are solved as one batch."""
    weights = torch.linspace(-1, 2, 5, dtype=torch.float64)
    steps = 1e-6 * torch.eye(y_hat.numel(), dtype=torch.float64).reshape(-1, *y_hat.shape)
    ahead, behind = (CONVERGED(y_hat + step) @ weights for step in (steps, -steps))
    differences = (ahead - behind).flatten(1).sum(-1) / 2e-6
    leaf = y_hat.clone().requires_grad_()
    (CONVERGED(leaf) @ weights).sum().backward()
    assert differences.abs().max() > 1
    torch.testing.assert_close(leaf.grad.flatten(), differences, atol=1e-5, rtol=1e-5)


def test_gradient_is_that_of_finite_differences(click_rates):
    z = CONVERGED(click_rates)
    n_free = ((z > 0) & (z < 1)).sum(-1)
    assert (n_free >= 2).sum() >= 3  # else there would be no gradient to check
    assert n_free.max() < 5  # and bounds are met as well
    assert_gradient_is_that_of_finite_differences(click_rates)


def test_gradient_is_that_of_finite_differences_where_the_budget_does_not_bind(click_rates):
    y_hat = click_rates - 0.15  # most websites do harm
    z = CONVERGED(y_hat)
    assert z.sum(-1).max() < 2
    assert ((z > 0) & (z < 1)).any()
    assert_gradient_is_that_of_finite_differences(y_hat)


def test_decision_is_optimal_among_feasible_directions(click_rates):
    # First-order optimality, by autograd of the objective: no feasible point has a larger inner
    # product with the gradient. Over 0 <= z <= 1, sum z <= 2 that maximum is the two largest.
    z = CONVERGED(click_rates).requires_grad_()
    value = CONVERGED.objective(z, click_rates) - 0.01 * (z - 2 / 5).square().sum(-1)
    (gradient,) = torch.autograd.grad(value.sum(), z)
    best = gradient.clamp_min(0).topk(2).values.sum(-1)
    torch.testing.assert_close((gradient * z).sum(-1), best, atol=1e-10, rtol=0)


def test_a_small_quadratic_term_leaves_the_decisions_of_the_exact_solver(click_rates):
    z = MultilinearRelaxation(budget=2, gamma=1e-6, n_steps=2000)(click_rates[0])
    exact = WebAdvertising(budget=2).solve_many(click_rates[0].numpy())
    np.testing.assert_allclose(z.numpy(), exact, atol=1e-6)


def test_objective_is_that_of_the_problem(click_rates):
    y = click_rates[0]
    z = torch.rand(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    values = MultilinearRelaxation(budget=2).objective(z, y)
    problem = WebAdvertising(budget=2)
    expected = [problem.objective(*pair) for pair in zip(z.numpy(), y.numpy(), strict=True)]
    np.testing.assert_allclose(values.numpy(), expected)


def test_predictions_of_nothing_spread_the_budget_evenly():
    z = MultilinearRelaxation(budget=2)(torch.zeros(1, 5, 4))
    torch.testing.assert_close(z, torch.full((1, 5), 0.4))


def test_default_steps_suffice_for_click_rates_in_single_precision(click_rates):
    z = MultilinearRelaxation(budget=2, gamma=0.02)(click_rates.float())
    torch.testing.assert_close(z.double(), CONVERGED(click_rates), atol=2e-3, rtol=0)


def test_predictions_spread_over_the_unit_interval_need_more_than_the_default_steps():
    # What the docstring says of its limits.
    generator = torch.Generator().manual_seed(0)
    y_hat = torch.rand(200, 5, 10, dtype=torch.float64, generator=generator)
    few, many, limit = (
        MultilinearRelaxation(budget=2, gamma=0.1, n_steps=n)(y_hat) for n in (50, 1000, 2000)
    )
    assert (few - limit).abs().amax(-1).quantile(0.9) > 0.3
    assert (many - limit).abs().amax(-1).quantile(0.9) < 1e-3
    small = 0.2 * y_hat
    few, limit = (MultilinearRelaxation(2, gamma=0.1, n_steps=n)(small) for n in (50, 500))
    torch.testing.assert_close(few, limit, atol=1e-4, rtol=0)


def test_an_instance_depends_on_no_other(click_rates):
    torch.testing.assert_close(
        CONVERGED(click_rates)[1, 2:], CONVERGED(click_rates[1, 2:]), atol=1e-14, rtol=0
    )


def test_a_budget_for_all_websites_buys_all(click_rates):
    z = MultilinearRelaxation(budget=5)(click_rates)
    torch.testing.assert_close(z, torch.ones_like(z))


@pytest.mark.parametrize("budget", [1, 2, 5])
def test_projection_is_the_nearest_point_of_the_capped_simplex(budget):
    # Independent: the nearest point by bisection on the price.
    v = 2 * torch.randn(500, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    low, high = torch.zeros(500, 1, dtype=v.dtype), v.amax(-1, keepdim=True).clamp_min(0)
    for _ in range(100):
        middle = (low + high) / 2
        is_over = (v - middle).clamp(0, 1).sum(-1, keepdim=True) > budget
        low, high = torch.where(is_over, middle, low), torch.where(is_over, high, middle)
    z, price = _project(v, budget)
    torch.testing.assert_close(z, (v - high).clamp(0, 1), atol=1e-12, rtol=0)
    torch.testing.assert_close(z[price > 0].sum(-1), torch.full_like(price, budget)[price > 0])
    assert (z[price == 0] == v[price == 0].clamp(0, 1)).all()


def test_quadratic_term_must_have_a_weight():
    with pytest.raises(InvalidInputError, match="`gamma` must be above 0, got 0"):
        MultilinearRelaxation(budget=2, gamma=0)
