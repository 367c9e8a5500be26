import dataclasses
import inspect

import numpy as np
import pytest

from lodl import domains
from lodl._arrays import context_of
from lodl.oracle import Oracle
from lodl.testing import check_problem


def mean_loss(domain, y_hat):
    """Return the mean decision loss of predictions of the test split."""
    test = domain.splits.test
    return Oracle(domain.problem).decision_loss(y_hat, test.y, context=test.context).mean()


DOMAINS = [
    make
    for make in (getattr(domains, name) for name in domains.__all__)
    if inspect.isfunction(make) and "sizes" in inspect.signature(make).parameters
]
EVERY = pytest.mark.parametrize("make", DOMAINS, ids=lambda make: make.__name__)
SMALL = (8, 6, 10)


def parts(domain):
    return [domain.splits.train, domain.splits.validation, domain.splits.test]


@EVERY
def test_a_domain_is_set_by_its_seed(make):
    for part, same, other in zip(
        *(parts(make(seed, sizes=SMALL)) for seed in (3, 3, 4)), strict=True
    ):
        for field in dataclasses.fields(part):
            value, again = getattr(part, field.name), getattr(same, field.name)
            np.testing.assert_array_equal(value, again)
        assert not np.array_equal(part.x, other.x)


@EVERY
def test_no_instance_is_in_two_splits(make):
    rows = [row.tobytes() for part in parts(make(sizes=(40, 30, 50))) for row in part.x]
    assert len(set(rows)) == len(rows)


@EVERY
def test_the_problem_keeps_its_contract_on_the_data(make):
    domain = make(sizes=SMALL)
    check_problem(domain.problem, domain.splits.train.y, context=domain.splits.train.context)


@EVERY
def test_knowing_the_label_beats_knowing_nothing(make):
    domain = make(sizes=SMALL)
    y = domain.splits.test.y
    assert mean_loss(domain, y) < mean_loss(domain, np.random.default_rng(0).random(y.shape))


@pytest.mark.parametrize("make", [make for make in DOMAINS if make is not domains.newsvendor])
def test_the_slope_is_the_derivative_of_the_objective_by_the_label(make):
    domain = make(sizes=SMALL)
    problem, train = domain.problem, domain.splits.train
    y, context = train.y[1], context_of(train.context, 1)
    z = problem.solve(train.y[0], context)
    slope, step = problem.slope(z, y, context), 1e-4
    for at in np.random.default_rng(0).choice(y.size, 10):
        change = step * (np.arange(y.size) == at).reshape(y.shape)
        up, down = (problem.objective(z, y + sign * change, context) for sign in (1, -1))
        assert (up - down) / (2 * step) == pytest.approx(slope.ravel()[at], abs=1e-8)
