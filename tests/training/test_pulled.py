"""Linear models on convex losses, pulled towards the plain model's slopes."""

import numpy as np
import pytest

from lodl.losses import DirectedWeightedMAE, DirectedWeightedMSE, FitErrors, LearnedLoss
from lodl.training._pulled import Pulled


def train_pulled(*arguments, **options):
    return Pulled(*arguments, **options).train()


def make_loss(family, y, over=1.0, under=1.0, width=0.1):
    dim = y[0].size
    phi = {name: np.full((len(y), dim), over) for name in family.parameter_shapes(dim)}
    phi["w_minus"] = np.full((len(y), dim), under)
    if "width" in phi:
        phi["width"] = np.full((len(y), dim), width)
    return LearnedLoss(family, y, phi, FitErrors.empty(len(y)), {})


def draw(n=400, p=3, dim=2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p)) + 2.0
    noise = rng.normal(size=(n, dim)) * (0.2 + 0.3 * np.abs(x[:, :1]))
    return x, x @ rng.normal(size=(p, dim)) + 5.0 + noise


def plain(x, y):
    rows = np.column_stack([x, np.ones(len(x))])
    w = np.linalg.lstsq(rows, y.reshape(len(rows), -1), rcond=None)[0]
    return w[:-1], w[-1]


def test_squared_error_stays_where_it_is():
    x, y = draw()
    slopes, constant = plain(x, y)
    trained = train_pulled(x, make_loss(DirectedWeightedMSE(), y), slopes, constant)
    np.testing.assert_allclose(trained[0], slopes, atol=1e-5)
    np.testing.assert_allclose(trained[1], constant, atol=1e-5)


@pytest.mark.slow
def test_a_pinball_loss_leads_to_quantile_regression():
    QuantileRegressor = pytest.importorskip("sklearn.linear_model").QuantileRegressor  # noqa: N806
    x, y = draw(n=3000)
    loss = make_loss(DirectedWeightedMAE(), y, under=9.0)
    slopes, constant, _ = train_pulled(x, loss, *plain(x, y))
    for j in range(2):
        expected = QuantileRegressor(quantile=0.9, alpha=0).fit(x, y[:, j])
        np.testing.assert_allclose(slopes[:, j], expected.coef_, atol=0.02)
        assert constant[j] == pytest.approx(expected.intercept_, abs=0.05)


def test_a_model_with_too_many_features_is_the_plain_model_shifted():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 50)), rng.normal(size=(60, 1))
    slopes, constant = 0.01 * rng.normal(size=(50, 1)), np.zeros(1)
    loss = make_loss(DirectedWeightedMAE(), y, under=19.0)
    trained, shifted, _ = train_pulled(x, loss, slopes, constant)
    residual = y - x @ slopes
    moved = np.std(x @ (trained - slopes)) / residual.std()
    assert moved < 0.5
    assert shifted > np.quantile(residual, 0.7)
    free = train_pulled(np.tile(x, (40, 1)), make_loss(DirectedWeightedMAE(), np.tile(y, (40, 1))),
                        slopes, constant)[0]  # fmt: skip
    assert np.std(x @ (free - slopes)) / residual.std() > 1.5 * moved


@pytest.mark.parametrize("family", [DirectedWeightedMAE(), DirectedWeightedMSE()], ids=repr)
def test_units_and_features_that_repeat_each_other_change_little(family):
    x, y = draw(p=4)
    loss = make_loss(family, y, under=5.0, width=0.5)
    slopes, constant, _ = train_pulled(x, loss, *plain(x, y))
    units = np.array([1.0, 100.0, 1e-4, 1.0])
    others = train_pulled(x * units, loss, *plain(x * units, y))
    np.testing.assert_allclose(others[0].T * units, slopes.T, rtol=2e-2, atol=1e-3)
    twice = np.column_stack([x, x])
    halves = train_pulled(twice, loss, np.tile(plain(x, y)[0] / 2, (2, 1)), plain(x, y)[1])
    difference = twice @ halves[0] + halves[1] - x @ slopes - constant
    assert np.abs(difference).max() < 0.05 * y.std()  # twice the features, twice the pull
    in_cents = make_loss(family, 100 * y, under=5.0, width=50.0)
    cents = train_pulled(x, in_cents, *plain(x, 100 * y))
    np.testing.assert_allclose(cents[0], 100 * slopes, rtol=1e-2, atol=0.5)


def test_slopes_that_are_not_free_and_a_missing_constant_stay():
    x, y = draw(p=3)
    slopes, _ = plain(x, y)
    slopes[1, 0] = 0.0
    is_free = slopes != 0
    loss = make_loss(DirectedWeightedMAE(), y, under=9.0)
    trained, constant, _ = train_pulled(
        x, loss, slopes, np.zeros(2), has_constant=False, is_free=is_free
    )
    assert trained[1, 0] == 0
    assert (trained != slopes)[is_free].all()
    assert (constant == 0).all()
    before, after = (loss.value(x @ w).mean() for w in (slopes, trained))
    assert after < before


def test_items_share_a_model():
    x, _ = draw(n=300, p=2)
    rng = np.random.default_rng(1)
    y = (x @ [[1.0], [2.0]] + rng.normal(size=(300, 1))).reshape(100, 3)
    slopes, constant = plain(x, y.reshape(-1, 1))
    loss = make_loss(DirectedWeightedMAE(), y, under=9.0)
    trained, shifted, n_steps = train_pulled(x, loss, slopes, constant)
    predictions = (x @ trained + shifted).reshape(100, 3)
    assert np.mean(predictions > y) == pytest.approx(0.9, abs=0.02)
    assert n_steps > 0


def test_a_penalty_keeps_slopes_near_those_of_the_plain_model():
    x, y = draw(p=6)
    slopes, constant = plain(x, y)
    loss = make_loss(DirectedWeightedMAE(), y, under=9.0)
    moved = [
        np.abs(train_pulled(x, loss, slopes, constant, penalty=penalty)[0] - slopes).max()
        for penalty in (0.0, 1.0, 1e4)
    ]
    assert moved[0] > 1.2 * moved[1] > 1.2**2 * moved[2]
    assert moved[2] < 1e-3
