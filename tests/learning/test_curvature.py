"""The test of whether a linear model is right."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from lodl.learning._search import is_linear, is_right, z_of_curvature
from lodl.losses import squared_error_loss
from lodl.training import learner_for


def folds(n: int) -> np.ndarray:
    return np.arange(n) % 5 != np.arange(5)[:, np.newaxis]


def data(degree: int, *, seed: int = 0, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    return x, (x @ rng.normal(size=(4, 6)) + 3) ** degree * rng.uniform(0.8, 1.2, size=(n, 6))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_linear_labels_are_told_from_curved_ones(seed):
    assert z_of_curvature(*data(1, seed=seed), folds(200)) < 0
    assert z_of_curvature(*data(3, seed=seed), folds(200)) > 2


def test_units_of_labels_and_features_do_not_matter():
    x, y = data(3)
    z = z_of_curvature(x, y, folds(200))
    assert z_of_curvature(
        1e6 * x, y * np.array([1e-6, 1, 1, 1, 1, 1e9]), folds(200)
    ) == pytest.approx(z)


def test_items_share_a_model():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 5, 3))
    w = rng.normal(size=3)
    noise = 0.3 * rng.normal(size=(60, 5))
    assert z_of_curvature(x, x @ w + noise, folds(60)) < 0
    assert z_of_curvature(x, (x @ w) ** 3 + noise, folds(60)) > 1


def test_a_single_item_is_a_label_of_one_number():
    x, y = data(3)
    alone = z_of_curvature(x[:, np.newaxis], y[:, :1], folds(200))
    assert alone == pytest.approx(z_of_curvature(x, y[:, :1], folds(200)))


def test_features_with_a_gap_are_not_tested():
    x, y = data(1)
    (model,) = learner_for(None).train(x, squared_error_loss(y))
    gap = x.copy()
    gap[7, 2] = np.nan
    assert is_linear(model, x)
    assert not is_linear(model, gap)


def test_data_that_show_nothing_give_zero():
    x, _ = data(1)
    assert z_of_curvature(x, np.ones((200, 3)), folds(200)) == 0.0
    assert z_of_curvature(x, x, np.ones((1, 200), dtype=bool)) == 0.0


def test_many_features_get_powers_only():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 80))
    y = x[:, :3] ** 2 + 0.1 * rng.normal(size=(300, 3))
    assert z_of_curvature(x, y, folds(300)) > 2


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (None, True),
        (make_pipeline(StandardScaler(), Ridge()), True),
        (make_pipeline(PolynomialFeatures(2), Ridge()), False),
    ],
    ids=["linear", "ridge", "polynomial"],
)
def test_a_model_is_right_if_it_and_the_labels_are_linear(estimator, expected):
    x, y = data(1)
    (model,) = learner_for(estimator).train(x, squared_error_loss(y))
    assert is_linear(model, x) is expected
    assert is_right(model, x, y, folds(200)) is expected
    assert not is_right(model, x, data(3)[1], folds(200))
    assert not is_linear(model, pd.DataFrame(x))
