"""Tests of every domain of the laboratory, as of the library's in `tests/domains`."""

import dataclasses
import inspect

import numpy as np
import pytest

from lodl import domains as of_lodl
from lodl._arrays import context_of
from lodl.oracle import Oracle
from lodl.testing import check_problem
from lodl_benchmarks import domains
from lodl_benchmarks.domains import Portfolio, WebAdvertising, synthetic_prices
from lodl_benchmarks.runner._task import ModelShape


def decision_losses(problem, y_hats, y, context=None):
    """Return the decision losses of many predictions for one instance."""
    contexts = None if context is None else [context]
    oracle = Oracle(problem)
    return oracle.decision_loss(np.asarray(y_hats)[:, None], y[None], context=contexts)[:, 0]


DOMAINS = [make for name, make in domains.DOMAINS.items() if not hasattr(of_lodl, name)]
EVERY = pytest.mark.parametrize("make", DOMAINS, ids=lambda make: make.__name__)
SMALL = (8, 6, 10)


def parts(domain):
    return [domain.splits.train, domain.splits.validation, domain.splits.test]


@pytest.mark.parametrize("make", domains.DOMAINS.values(), ids=lambda make: make.__name__)
def test_a_model_applied_to_the_last_axis_fills_the_label(make):
    domain = make(sizes=SMALL)
    x, y, model = domain.splits.train.x, domain.splits.train.y, ModelShape.of(domain)
    assert x.shape[-1] == model.n_features
    assert x.size // model.n_features * model.n_outputs == y.size


@pytest.mark.parametrize(
    ("make", "problem", "sizes", "x_shape", "y_shape", "context_shape"),
    [
        (domains.web_advertising, WebAdvertising(2), (80, 20, 500), (5, 10), (5, 10), None),
        (domains.portfolio, Portfolio(0.1, True), (200, 200, 400), (50, 28), (50,), (50, 50)),
    ],
)
def test_defaults_are_the_papers(make, problem, sizes, x_shape, y_shape, context_shape):
    domain = make()
    assert domain.problem == problem
    for part, size in zip(parts(domain), sizes, strict=True):
        assert part.x.shape == (size, *x_shape)
        assert part.y.shape == (size, *y_shape)
        shape = None if part.context is None else part.context.shape[1:]
        assert shape == context_shape


@EVERY
def test_a_domain_is_set_by_its_seed(make):
    for one, same, other in zip(
        *(parts(make(seed, sizes=SMALL)) for seed in (3, 3, 4)), strict=True
    ):
        for field in dataclasses.fields(one):
            value, again = getattr(one, field.name), getattr(same, field.name)
            np.testing.assert_array_equal(value, again)
        assert not np.array_equal(one.x, other.x)


@EVERY
def test_no_instance_is_in_two_splits(make):
    rows = [row.tobytes() for part in parts(make(sizes=(40, 30, 50))) for row in part.x]
    empty = _features_of_no_clicks(make)
    rows = [row for row in rows if row != empty]
    assert len(set(rows)) == len(rows)


def _features_of_no_clicks(make):
    """Web instances without a click all look alike: the one pair of equals that is allowed."""
    if make is not domains.web_advertising:
        return None
    part = parts(make(sizes=(40, 30, 50)))[0]
    return part.x[(part.y == 0).all(axis=(1, 2))][0].tobytes()


@EVERY
def test_the_problem_keeps_its_contract_on_the_data(make):
    domain = make(sizes=SMALL)
    check_problem(domain.problem, domain.splits.train.y, context=domain.splits.train.context)


@EVERY
def test_knowing_the_label_beats_knowing_nothing(make):
    domain = make(sizes=SMALL)
    test, rng = domain.splits.test, np.random.default_rng(0)
    best, random = (
        np.mean(
            [
                decision_losses(domain.problem, y_hat[None], y, context_of(test.context, number))
                for number, (y_hat, y) in enumerate(zip(y_hats, test.y, strict=True))
            ]
        )
        for y_hats in (test.y, rng.random(test.y.shape))
    )
    assert best < random


@pytest.mark.parametrize("make", [make for make in DOMAINS if make is not domains.dispatch])
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


def test_the_table_has_every_domain():
    made = [getattr(domains, name) for name in domains.__all__]
    made = [make for make in made if inspect.isfunction(make) and "sizes" in vars_of(make)]
    assert set(made) == set(DOMAINS)
    assert all(name == make.__name__ for name, make in domains.DOMAINS.items())


def vars_of(make):
    return inspect.signature(make).parameters


@pytest.mark.slow
def test_web_advertising_has_the_published_optimum_and_random_quality():
    domain = domains.web_advertising(sizes=(1, 1, 2000))
    y, rng = domain.splits.test.y, np.random.default_rng(0)
    for y_hats, clicks in [(y, 0.19), (rng.random(y.shape), 0.08)]:
        loss = Oracle(domain.problem).decision_loss(y_hats, y).mean()
        assert -10 * loss == pytest.approx(clicks, rel=0.15)


def test_other_prices_can_be_handed_in():
    prices = synthetic_prices(7, n_days=400, n_stocks=12)
    stocks = domains.portfolio(prices=prices, sizes=SMALL, n_stocks=5)
    assert np.shape(stocks.splits.test.context) == (10, 5, 5)
