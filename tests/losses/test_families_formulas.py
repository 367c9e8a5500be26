"""Formulas against the paper's, term by term, and families that contain one another."""

import numpy as np
import pytest

from lodl.errors import InvalidInputError
from lodl.losses import (
    DirectedQuadratic,
    DirectedWeightedMAE,
    DirectedWeightedMSE,
    NeuralLoss,
    Quadratic,
    WeightedMSE,
)

N, M, D = 3, 40, 5


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def d(rng):
    return rng.standard_normal((N, M, D))


def no_floor():
    return np.zeros((N, D))


def test_directed_weighted_mse_weighs_each_side_apart(rng, d):
    w_plus, w_minus = rng.random((2, N, D))
    value = DirectedWeightedMSE().value({"w_plus": w_plus, "w_minus": w_minus}, d)
    expected = sum(
        (w_plus[1, i] if d[1, 7, i] >= 0 else w_minus[1, i]) * d[1, 7, i] ** 2 for i in range(D)
    )
    assert value[1, 7] == pytest.approx(expected)


def test_directed_weighted_mae_is_the_pinball_loss_of_one_label(d):
    mean_pinball_loss = pytest.importorskip("sklearn.metrics").mean_pinball_loss
    phi = {"w_plus": np.full((N, D), 0.2), "w_minus": np.full((N, D), 0.8), "width": no_floor()}
    y = np.zeros(N * M * D)
    pinball = mean_pinball_loss(y, d.reshape(-1), alpha=0.8)  # 0.8 / (0.2 + 0.8)
    assert DirectedWeightedMAE().value(phi, d).sum() / d.size == pytest.approx(pinball)


def test_directed_weighted_mae_with_squares_is_kinks_plus_directed_squares(rng, d):
    names = ("w_plus", "w_minus", "s_plus", "s_minus", "width")
    phi = dict(zip(names, rng.random((5, N, D)), strict=True))
    squares = DirectedWeightedMSE().value({"w_plus": phi["s_plus"], "w_minus": phi["s_minus"]}, d)
    kinks = DirectedWeightedMAE().value(phi, d)
    over = d[1, 7] > 0
    assert kinks[1, 7] == pytest.approx(
        np.abs(d[1, 7]) @ np.where(over, phi["w_plus"][1], phi["w_minus"][1])
    )
    np.testing.assert_allclose(DirectedWeightedMAE(squares=True).value(phi, d), kinks + squares)


def test_quadratic_is_the_quadratic_form_plus_its_floor(rng, d):
    factor, floor = rng.standard_normal((N, D, 2)), rng.random((N, D))
    value = Quadratic(rank=2).value({"L": factor, "floor": floor}, d)
    h = factor[1] @ factor[1].T + np.diag(floor[1])
    assert value[1, 7] == pytest.approx(d[1, 7] @ h @ d[1, 7])


@pytest.mark.parametrize("rank", [1, 3, None])
def test_directed_quadratic_picks_each_entry_by_the_signs_of_row_and_column(rng, d, rank):
    family = DirectedQuadratic(rank=rank)
    factor = rng.standard_normal((N, *family.parameter_shapes(D)["L"]))
    value = family.value({"L": factor, "floor": no_floor()}, d)
    error = d[1, 7]
    sign = [0 if e >= 0 else 1 for e in error]
    columns = [
        sum(factor[1, sign[i], sign[j], i, j] * error[i] for i in range(D))
        for j in range(rank or D)
    ]
    assert value[1, 7] == pytest.approx(sum(c**2 for c in columns))


def test_the_network_is_layers_of_relu_units(rng, d):
    family = NeuralLoss(n_layers=3, n_units=4)
    phi = {
        name: rng.standard_normal((N, *shape)) for name, shape in family.parameter_shapes(D).items()
    }
    h = d[1, 7]
    for layer in (1, 2, 3):
        h = np.maximum(h @ phi[f"W{layer}"][1] + phi[f"b{layer}"][1], 0)
    assert family.value(phi, d)[1, 7] == pytest.approx(h.item())


def test_directed_weighted_mse_with_equal_sides_is_weighted_mse(rng, d):
    w = rng.random((N, D))
    np.testing.assert_allclose(
        DirectedWeightedMSE().value({"w_plus": w, "w_minus": w}, d),
        WeightedMSE().value({"w": w}, d),
    )


def test_quadratic_with_a_diagonal_is_weighted_mse(rng, d):
    w = rng.random((N, D))
    factor = np.sqrt(w)[:, :, np.newaxis] * np.eye(D)
    np.testing.assert_allclose(
        Quadratic().value({"L": factor, "floor": no_floor()}, d), WeightedMSE().value({"w": w}, d)
    )


def test_directed_quadratic_with_four_equal_factors_is_quadratic(rng, d):
    factor, floor = rng.standard_normal((N, D, D)), rng.random((N, D))
    fourfold = np.tile(factor[:, np.newaxis, np.newaxis], (1, 2, 2, 1, 1))
    np.testing.assert_allclose(
        DirectedQuadratic().value({"L": fourfold, "floor": floor}, d),
        Quadratic().value({"L": factor, "floor": floor}, d),
    )


@pytest.mark.parametrize(
    ("family", "n_parameters"),
    [
        (WeightedMSE(), 50),
        (DirectedWeightedMSE(), 100),
        (DirectedWeightedMAE(), 100 + 50),
        (DirectedWeightedMAE(squares=True), 200 + 50),
        (Quadratic(rank=3), 150 + 50),
        (DirectedQuadratic(), 10_000 + 50),
        (NeuralLoss(), 5_000 + 20_401),
    ],
    ids=repr,
)
def test_the_number_of_parameters_is_the_documented_one(family, n_parameters):
    assert sum(np.prod(s, dtype=int) for s in family.parameter_shapes(50).values()) == n_parameters


@pytest.mark.parametrize("make", [Quadratic, DirectedQuadratic])
@pytest.mark.parametrize("rank", [0, -1, 1.5, True])
def test_a_rank_that_cannot_be_is_refused(make, rank):
    with pytest.raises(InvalidInputError, match="`rank` must be a whole number of at least 1"):
        make(rank=rank)


@pytest.mark.parametrize("make", [Quadratic, DirectedQuadratic])
def test_a_rank_above_the_label_is_refused(make):
    with pytest.raises(InvalidInputError, match=r"`rank` must be at most .* \(5\), got 6"):
        make(rank=6).parameter_shapes(5)


@pytest.mark.parametrize(
    "make",
    [
        WeightedMSE,
        DirectedWeightedMSE,
        DirectedWeightedMAE,
        Quadratic,
        DirectedQuadratic,
    ],
)
@pytest.mark.parametrize("min_weight", [-1e-3, 1.5, float("nan")])
def test_a_floor_that_is_no_share_is_refused(make, min_weight):
    with pytest.raises(
        InvalidInputError, match="`min_weight` must be a number of at least 0 and at"
    ):
        make(min_weight=min_weight)


@pytest.mark.parametrize("settings", [{"n_layers": 1}, {"n_units": 0}])
def test_a_network_without_hidden_units_is_refused(settings):
    with pytest.raises(InvalidInputError, match=f"`{next(iter(settings))}` must be"):
        NeuralLoss(**settings)


@pytest.mark.parametrize("make", [Quadratic, DirectedWeightedMAE])
@pytest.mark.parametrize("ridge", [-1e-3, float("inf"), float("nan")])
def test_a_ridge_that_is_no_strength_is_refused(make, ridge):
    with pytest.raises(InvalidInputError, match="`ridge` must be a number of at least 0"):
        make(ridge=ridge)
