"""The generators of PyEPO, entry by entry."""

from itertools import combinations
from math import dist, sqrt

import numpy as np
import pytest
from pyepo import data

from lodl_benchmarks import domains

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
def test_pairs_have_costs_of_the_formula(degree, noise):
    domain = domains.assignment(7, sizes=SIZES, n_workers=2, n_tasks=3, degree=degree, noise=noise)
    x, y = by_formula(np.random.RandomState(7), 7, 6, degree, noise)
    np.testing.assert_array_equal(instances(domain, "x"), x)
    np.testing.assert_allclose(instances(domain, "y"), y.reshape(7, 2, 3), rtol=1e-12)


@SETTINGS
@pytest.mark.parametrize("n_nodes", [4, 5])
def test_edges_have_the_published_costs(degree, noise, n_nodes):
    domain = domains.travelling_salesman(
        7, sizes=SIZES, n_nodes=n_nodes, degree=degree, noise=noise
    )
    rng, edges = np.random.RandomState(7), list(combinations(range(n_nodes), 2))
    nodes = [*rng.uniform(-2, 2, (n_nodes // 2, 2)), *rng.normal(size=((n_nodes + 1) // 2, 2))]
    chosen = rng.binomial(1, 0.5, (len(edges), 5))
    slopes = rng.uniform(-2, 2, (len(edges), 5))
    x = rng.normal(size=(7, 5))
    e = rng.uniform(1 - noise, 1 + noise, (7, len(edges)))
    np.testing.assert_array_equal(instances(domain, "x"), x)
    for i in range(7):
        for j, (a, b) in enumerate(edges):
            index = sum(x[i, k] * slopes[j, k] for k in range(5) if chosen[j, k]) / sqrt(5)
            cost = (index + 3) ** degree / 3 ** (degree - 1) * e[i, j] + dist(nodes[a], nodes[b])
            assert instances(domain, "y")[i, j] == pytest.approx(cost, abs=6e-5)


@SETTINGS
def test_tours_have_the_data_of_pyepo(degree, noise):
    domain = domains.travelling_salesman(7, sizes=SIZES, degree=degree, noise=noise)
    x, y = data.tsp.genData(7, 5, 10, degree, noise, seed=7)
    np.testing.assert_array_equal(instances(domain, "x"), x)
    np.testing.assert_array_equal(instances(domain, "y").astype(np.float32), y)
