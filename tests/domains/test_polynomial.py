"""The generators of PyEPO, entry by entry."""

from math import ceil, sqrt
from typing import Any

import numpy as np
import pytest

from lodl import domains
from lodl.errors import InvalidInputError

SIZES = (3, 2, 2)
SETTINGS = pytest.mark.parametrize(("degree", "noise"), [(1, 0.0), (4, 0.5), (6, 0.3)])


def instances(domain, field):
    splits = domain.splits
    return np.concatenate(
        [getattr(part, field) for part in (splits.train, splits.validation, splits.test)]
    )


def by_formula(rng, n, n_outputs, degree, noise, scale=1.0):
    """Features and labels, one number at a time, from random numbers in PyEPO's order."""
    chosen = rng.binomial(1, 0.5, (n_outputs, 5))
    x = rng.normal(0, 1, (n, 5))
    e = rng.uniform(1 - noise, 1 + noise, (n, n_outputs))
    y = np.empty((n, n_outputs))
    for i in range(n):
        for j in range(n_outputs):
            index = sum(x[i, k] for k in range(5) if chosen[j, k]) / sqrt(5)
            y[i, j] = scale * ((index + 3) ** degree + 1) / 3.5**degree * e[i, j]
    return x, y


@SETTINGS
def test_paths_have_the_published_costs(degree, noise):
    domain = domains.shortest_path(7, sizes=SIZES, grid=(3, 4), degree=degree, noise=noise)
    x, y = by_formula(np.random.RandomState(7), 7, 17, degree, noise)
    np.testing.assert_array_equal(instances(domain, "x"), x)
    np.testing.assert_allclose(instances(domain, "y"), y, rtol=1e-12)


@SETTINGS
@pytest.mark.parametrize("n_dimensions", [1, 3])
def test_knapsacks_have_the_published_weights_and_values(degree, noise, n_dimensions):
    domain = domains.knapsack(
        7, sizes=SIZES, n_items=6, n_dimensions=n_dimensions, degree=degree, noise=noise
    )
    rng = np.random.RandomState(7)
    weights = rng.choice(range(300, 800), size=(n_dimensions, 6)) / 100
    x, y = by_formula(rng, 7, 6, degree, noise, scale=5)
    np.testing.assert_array_equal(vars(domain.problem)["weights"], weights)
    np.testing.assert_array_equal(instances(domain, "x"), x)
    np.testing.assert_array_equal(instances(domain, "y"), np.vectorize(ceil)(y))


def test_items_have_values_of_their_own_features():
    domain = domains.item_knapsack(7, sizes=SIZES, n_items=6)
    rng = np.random.RandomState(7)
    weights = rng.randint(3, 9, size=(7, 6))
    x, y = by_formula(rng, 42, 1, degree=6, noise=0.5, scale=5)
    np.testing.assert_array_equal(instances(domain, "context"), weights)
    np.testing.assert_array_equal(instances(domain, "x"), x.reshape(7, 6, 5))
    np.testing.assert_allclose(instances(domain, "y"), y.reshape(7, 6), rtol=1e-12)


def test_demands_and_prices_are_those_of_the_formula():
    domain = domains.newsvendor(7, sizes=SIZES, n_products=6)
    rng = np.random.RandomState(7)
    problem: Any = domain.problem
    price, missing, left_over = (rng.uniform(*ends, 6) for ends in [(1, 5), (1.2, 4), (0.2, 0.9)])
    x, y = by_formula(rng, 7, 6, degree=4, noise=0.5, scale=10)
    np.testing.assert_array_equal(problem.price, price)
    np.testing.assert_allclose(problem.missing, price * missing)
    np.testing.assert_allclose(problem.left_over, price * left_over)
    np.testing.assert_array_equal(instances(domain, "x"), x)
    np.testing.assert_allclose(instances(domain, "y"), y, rtol=1e-12)
    assert problem.budget == pytest.approx(price @ y[:3].mean(axis=0))


@SETTINGS
def test_the_data_is_that_of_pyepo(degree, noise):
    data = pytest.importorskip("pyepo.data")
    domain = domains.shortest_path(7, sizes=SIZES, degree=degree, noise=noise)
    x, y = data.shortestpath.genData(7, 5, (5, 5), degree, noise, seed=7)
    np.testing.assert_array_equal(instances(domain, "x"), x)
    np.testing.assert_array_equal(instances(domain, "y").astype(np.float32), y)
    domain = domains.knapsack(7, sizes=SIZES, degree=degree, noise=noise)
    weights, x, y = data.knapsack.genData(7, 5, 16, 2, degree, noise, seed=7)
    np.testing.assert_array_equal(vars(domain.problem)["weights"], weights)
    np.testing.assert_array_equal(instances(domain, "x"), x)
    np.testing.assert_array_equal(instances(domain, "y"), y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"degree": 0}, "`degree` must be a whole number"),
        ({"noise": -0.1}, "`noise` must be a number of at least 0 and at most 1"),
        ({"noise": float("nan")}, "`noise` must be a number of at least 0 and at most 1"),
        ({"sizes": (1, 2)}, "`sizes` must be three numbers"),
        ({"seed": -1}, "`seed` must be a whole number"),
    ],
)
def test_settings_must_make_sense(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        domains.shortest_path(**arguments)
