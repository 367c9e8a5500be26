"""Pooled fits: common weights, the strength of the pull, and each instance's own weights."""

import numpy as np
import pytest
import scipy.optimize

import lodl
from lodl.errors import InvalidInputError
from lodl.losses import (
    DirectedWeightedMAE,
    DirectedWeightedMSE,
    FitStatus,
    Quadratic,
    WeightedMSE,
    fit_pooled,
)
from lodl.losses._pooled import _instance_weights, pool, terms_of

POOLED = [
    WeightedMSE(),
    DirectedWeightedMSE(),
    DirectedWeightedMAE(),
    DirectedWeightedMAE(squares=True),
]

every_family = pytest.mark.parametrize("family", POOLED, ids=repr)


def draw(family, *, n=60, n_samples=3, dim=4, spread=0.0, seed=0):
    """Errors, regrets, parameters and labels; weights differ with the label by `spread`."""
    rng = np.random.default_rng(seed)
    d, y = rng.normal(size=(n, n_samples, dim)), rng.normal(size=(n, dim))
    phi = family.fallback(cost=1.0, scale=np.ones(dim))
    for place, name in enumerate(family.degrees):
        phi[name] = (place + 1.0) * np.exp(spread * np.tanh(y @ rng.normal(size=(dim, dim))))
    phi["width"] = np.ones((n, dim))
    return d, family.value(phi, d), phi, y


@every_family
def test_the_basis_times_the_weights_is_the_loss(family):
    d, regret, phi, _ = draw(family, spread=0.5)
    terms = terms_of(family, d)
    weights = np.stack([phi[name] for name in family.degrees], axis=1)
    np.testing.assert_allclose((terms * weights[:, None]).sum(axis=(2, 3)), regret)


@every_family
def test_losses_that_are_alike_are_found_from_two_samples_each(family):
    d, regret, phi, y = draw(family, n_samples=2)
    actual, _, tau = pool(family, d, regret, y)
    assert tau == "all alike"
    for name in family.degrees:
        np.testing.assert_allclose(actual[name], phi[name], rtol=1e-4)


@every_family
def test_losses_that_differ_keep_a_part_of_their_differences(family):
    d, regret, phi, y = draw(family, n_samples=8, spread=1.0, seed=1)
    actual, held_out, tau = pool(family, d, regret, y)
    assert tau != "all alike"
    common = {name: np.repeat(actual[name].mean(axis=0)[None], len(d), axis=0) for name in actual}
    unseen = np.random.default_rng(2).normal(size=d.shape)
    truth = family.value(phi, unseen)
    own = np.square(family.value(actual, unseen) - truth).mean()
    assert own < 0.8 * np.square(family.value(common, unseen) - truth).mean()
    assert 0.2 < own / np.square(held_out - regret).mean() < 1.5  # one answer less, no bound


@pytest.mark.parametrize("tau", [1e-4, 1e-2, 1.0, 100.0])
def test_weights_of_an_instance_are_the_optimum_of_penalised_non_negative_least_squares(tau):
    rng = np.random.default_rng(0)
    f, r = rng.random((20, 5, 7)), rng.normal(size=(20, 5))
    common = rng.uniform(0.1, 2.0, 7)
    weights = _instance_weights(f, r, common, tau)
    for i in range(20):
        columns = np.vstack([f[i], np.sqrt(tau) * np.diag(1 / common)])
        target = np.concatenate([r[i], np.full(7, np.sqrt(tau))])
        np.testing.assert_allclose(weights[i], scipy.optimize.nnls(columns, target)[0], atol=1e-8)


def test_answers_about_near_labels_count_as_an_instances_own():
    family, dim = WeightedMSE(), 8
    rng = np.random.default_rng(0)
    y = rng.normal(size=(200, dim))
    w = np.where(y[:, :1] > 0, 4.0, 1.0) * np.ones(dim)  # a cost that jumps with the label
    d = rng.normal(size=(200, 2, dim))
    regret = (w[:, None] * d**2).sum(axis=-1)
    phi, held_out, _ = pool(family, d, regret, y)
    is_clear = np.abs(y[:, 0]) > 1
    high, low = (phi["w"][is_clear & side].mean() for side in (y[:, 0] > 0, y[:, 0] < 0))
    assert high > 1.8 * low
    far, held_out_far, _ = pool(family, d, regret, rng.normal(size=y.shape))
    unseen = rng.normal(size=d.shape)
    truth = (w[:, None] * unseen**2).sum(axis=-1)
    near_error, far_error = (np.square(family.value(p, unseen) - truth).mean() for p in (phi, far))
    assert near_error < 0.8 * far_error
    assert np.square(held_out - regret).mean() < np.square(held_out_far - regret).mean()


def test_left_out_answers_are_those_of_fits_without_them():
    family = WeightedMSE()
    d, regret, _, y = draw(family, n=40, n_samples=4, spread=0.3)
    phi, held_out, _ = pool(family, d, regret, y)
    is_positive = (phi["w"] > 0.01).all(axis=1)  # the closed form knows no bound
    spoiled = regret.copy()
    spoiled[:, 2] *= 1.0001  # one answer of each instance moves its own prediction hardly at all
    moved = pool(family, d, spoiled, y)[1]
    np.testing.assert_allclose(moved[is_positive, 2], held_out[is_positive, 2], rtol=1e-3)


@every_family
def test_the_fit_does_not_depend_on_units(family):
    d, regret, _, y = draw(family, n_samples=4, spread=0.5)
    units = np.array([1e-2, 1.0, 50.0, 1e4])
    plain = family.value(pool(family, d, regret, y)[0], d)
    phi = pool(family, d * 1e4, regret * 1e-5, 1e4 * y)[0]
    np.testing.assert_allclose(family.value(phi, d * 1e4) * 1e5, plain, rtol=1e-6)
    phi = pool(family, d * units, regret, units * y)[
        0
    ]  # coordinates alike in the label's unit are not here
    np.testing.assert_allclose(family.value(phi, d * units), plain, rtol=0.1)


def test_one_weight_for_all_coordinates_may_be_meant_in_the_labels_unit():
    rng = np.random.default_rng(0)
    family, scale = DirectedWeightedMAE(), np.array([0.1, 1.0, 10.0])
    d = rng.normal(size=(20, 1, 3)) * scale
    regret = (0.5 * np.maximum(d, 0) + 50 * np.maximum(-d, 0)).sum(axis=-1)
    phi, _, _ = pool(family, d, regret, d[:, 0])
    np.testing.assert_allclose(phi["w_minus"], 50.0, rtol=1e-2)


@every_family
def test_failed_answers_are_left_out(family):
    d, regret, _, y = draw(family, n=40, n_samples=4, spread=0.5)
    d_more = np.concatenate([d, 7 * d[:, :1]], axis=1)
    regret_more = np.concatenate([regret, np.full((len(d), 1), np.nan)], axis=1)
    expected, actual = pool(family, d, regret, y), pool(family, d_more, regret_more, y)
    for name in expected[0]:
        np.testing.assert_allclose(actual[0][name], expected[0][name], rtol=1e-6)
    np.testing.assert_allclose(actual[1][:, :4], expected[1], rtol=1e-6)
    assert np.isnan(actual[1][:, 4]).all()


@every_family
@pytest.mark.parametrize("n", [1, 2, 4])
def test_few_instances_can_be_pooled(family, n):
    d, regret, _, y = draw(family, n=n, n_samples=2)
    phi, _, _ = pool(family, d, regret, y)
    assert all(np.isfinite(rows).all() and (rows >= 0).all() for rows in phi.values())


@every_family
def test_regrets_of_zero_leave_a_loss_that_stands_in(family):
    d = np.random.default_rng(0).normal(size=(6, 3, 4))
    phi, held_out, tau = pool(family, d, np.zeros((6, 3)), d[:, 0])
    assert tau == "nothing"
    assert np.isnan(held_out).all()
    assert (family.value(phi, d) > 0).all()


def test_no_weight_lies_below_the_floor():
    family = DirectedWeightedMAE(min_weight=0.01)
    d, regret, _, y = draw(DirectedWeightedMAE(), n_samples=6, spread=1.0)
    rng = np.random.default_rng(3)
    phi, _, _ = pool(family, d, np.maximum(regret + 5 * rng.normal(size=regret.shape), 0), y)
    mean = np.mean([phi["w_plus"].mean(), phi["w_minus"].mean()])
    assert min(phi["w_plus"].min(), phi["w_minus"].min()) > 0.003 * mean


@pytest.fixture(scope="module")
def orders():
    """Samples of orders that cost 1 a unit too many and 4 a unit missing."""

    def cost(order, demand):
        return float(np.maximum(order - demand, 4 * (demand - order)).sum())

    shop = lodl.problem(lambda y_hat: y_hat, cost, sense="min")
    y = np.random.default_rng(0).normal(size=(12, 2, 3))
    return lodl.Oracle(shop, progress=False).sample(y, n_samples=4)


def test_samples_are_read_at_once_as_they_are_read_one_by_one(orders):
    d, regret = orders.errors_and_regrets()
    for i in range(12):
        np.testing.assert_array_equal(d[i], orders[i].d)
        np.testing.assert_array_equal(regret[i], orders[i].regret)


def test_errors_are_those_of_points_before_they_are_projected():
    shop = lodl.domains.newsvendor(sizes=(8, 1, 1))
    y = shop.splits.train.y
    sampler = lodl.AllPerturbed(scale=30.0)
    samples = lodl.Oracle(shop.problem, progress=False).sample(y, sampler, 5)
    d, regret = samples.errors_and_regrets()
    assert (y[:, None] + d < 0).any()
    np.testing.assert_allclose(
        np.maximum(y[:, None] + d, 0) - y[:, None], np.stack([samples[i].d for i in range(8)])
    )
    np.testing.assert_array_equal(regret, np.stack([samples[i].regret for i in range(8)]))


def test_a_pooled_loss_has_held_out_errors(orders):
    loss = fit_pooled(orders, DirectedWeightedMAE())
    assert (loss.errors.status == FitStatus.FITTED).all()
    assert (loss.errors.n_held_out == 4).all()
    assert loss.errors.mae_held_out.max() < 1e-3 * loss.errors.mean_regret.min()
    assert loss.errors.r2_held_out.min() > 0.999
    assert loss.provenance["pooled"] == "all alike"
    squares = fit_pooled(orders, DirectedWeightedMSE())
    assert squares.errors.r2_held_out.mean() < 0.99


def test_an_instance_without_samples_gets_the_common_weights(orders):
    d, regret = orders.errors_and_regrets()
    regret[3] = np.nan
    phi, held_out, _ = pool(DirectedWeightedMAE(), d, regret, orders.y.reshape(12, -1))
    np.testing.assert_allclose(phi["w_minus"][3], 4.0, rtol=1e-3)
    assert np.isnan(held_out[3]).all()


def test_a_family_that_is_not_linear_in_its_parameters_is_refused(orders):
    with pytest.raises(InvalidInputError, match=r"Quadratic.* cannot be pooled"):
        fit_pooled(orders, Quadratic())
