"""The formula and the fit of `ConvexDirectedQuadratic`, a custom family."""

from dataclasses import replace

import numpy as np
import pytest

import lodl
from lodl.errors import InvalidInputError
from lodl.losses import DirectedWeightedMSE, Quadratic
from lodl.testing import check_family
from lodl_benchmarks.convex_directed_quadratic import ConvexDirectedQuadratic

N, K, D = 3, 8, 5


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def d(rng):
    return rng.standard_normal((N, K, D))


@pytest.mark.parametrize("rank", [4, 2, None])
def test_it_keeps_the_contract_of_a_family(rank):
    check_family(ConvexDirectedQuadratic(rank=rank))


def test_convex_directed_quadratic_is_hinges_plus_a_directed_diagonal(rng, d):
    a, w_plus, w_minus = rng.standard_normal((N, 3, D)), rng.random((N, D)), rng.random((N, D))
    phi = {"a": a, "w_plus": w_plus, "w_minus": w_minus}
    value = ConvexDirectedQuadratic(rank=3).value(phi, d)
    error = d[1, 7]
    hinges = sum(max(a[1, r] @ error, 0) ** 2 for r in range(3))
    diagonal = w_plus[1] @ np.maximum(error, 0) ** 2 + w_minus[1] @ np.maximum(-error, 0) ** 2
    assert value[1, 7] == pytest.approx(hinges + diagonal)


def test_convex_directed_quadratic_contains_directed_weighted_mse(rng, d):
    w_plus, w_minus = rng.random((2, N, D))
    directed = {"w_plus": w_plus, "w_minus": w_minus}
    np.testing.assert_allclose(
        ConvexDirectedQuadratic(rank=2).value({"a": np.zeros((N, 2, D)), **directed}, d),
        DirectedWeightedMSE().value(directed, d),
    )


@pytest.mark.parametrize("rank", [2, None])
def test_convex_directed_quadratic_contains_quadratic_by_two_hinges_a_column(rng, d, rank):
    quadratic = Quadratic(rank=rank)
    factor, floor = rng.standard_normal((N, D, rank or D)), rng.random((N, D))
    columns = factor.swapaxes(1, 2)
    phi = {
        "a": np.concatenate([columns, -columns], axis=1),
        "w_plus": floor,
        "w_minus": floor,
    }
    family = ConvexDirectedQuadratic(rank=None if rank is None else 2 * rank)
    assert phi["a"].shape[1:] == family.parameter_shapes(D)["a"]
    np.testing.assert_allclose(
        family.value(phi, d), quadratic.value({"L": factor, "floor": floor}, d)
    )


def test_it_repeats_regrets_better_than_a_family_that_it_contains():
    y = np.random.default_rng(1).normal(size=(1, 6))
    samples = lodl.Oracle(lodl.domains.TopK(2), progress=False).sample(y, n_samples=800)

    def error(family):
        return lodl.losses.fit(samples, family, progress=False).errors.mae_held_out[0]

    assert error(ConvexDirectedQuadratic()) < error(DirectedWeightedMSE())


def test_an_endless_ridge_leaves_a_plain_squared_error():
    y = np.random.default_rng(1).normal(size=(1, 6))
    answers = lodl.Oracle(lodl.domains.TopK(2), progress=False).sample(y, n_samples=300)[0]
    size = np.square(answers.d / np.sqrt(np.square(answers.d).mean(axis=0))).sum(axis=1)
    family = ConvexDirectedQuadratic(ridge=1e9)
    phi = {name: value[np.newaxis] for name, value in family.fit(answers).items()}
    expected = size * (size @ answers.regret) / (size @ size)
    np.testing.assert_allclose(family.value(phi, answers.d[np.newaxis])[0], expected, rtol=1e-5)


def test_a_loss_file_is_read_again(tmp_path):
    y = np.random.default_rng(1).normal(size=(2, 4))
    family = replace(ConvexDirectedQuadratic(), rank=2)
    loss = lodl.learn_loss(lodl.domains.TopK(1), y, family=family, n_samples=60)
    loss.save(tmp_path / "loss.safetensors")
    again = lodl.load_loss(tmp_path / "loss.safetensors")
    assert again.family == family
    np.testing.assert_array_equal(again.value(y + 1), loss.value(y + 1))


@pytest.mark.parametrize("rank", [0, -1, 1.5, True])
def test_a_rank_that_cannot_be_is_refused(rank):
    with pytest.raises(InvalidInputError, match="`rank` must be a whole number of at least 1"):
        ConvexDirectedQuadratic(rank=rank)
