import numpy as np
import pytest

from lodl.domains import TopK
from lodl.evaluation import decision_loss
from lodl_benchmarks.domains import linear_model


def test_defaults_of_the_linear_model_are_the_papers():
    domain = linear_model()
    assert domain.problem == TopK(1)
    for part, size in zip(
        (domain.splits.train, domain.splits.validation, domain.splits.test),
        (200, 200, 400),
        strict=True,
    ):
        assert part.x.shape == (size, 50, 1)
        assert part.y.shape == (size, 50)


def test_a_rising_line_is_worth_more_than_the_least_squares_line():
    domain = linear_model()
    x, y = domain.splits.test.x[..., 0], domain.splits.test.y
    slope = (x * y).mean() / (x * x).mean()
    assert slope == pytest.approx(-0.5, abs=0.05)
    fitted, rising = (decision_loss(domain.problem, w * x, y).mean() for w in (slope, 1.0))
    assert rising < -2.5 < 2.5 < fitted


def test_labels_are_the_cubic_of_the_features():
    test = linear_model(3).splits.test
    x = test.x[..., 0]
    np.testing.assert_allclose(test.y, 10 * x * x * x - 6.5 * x, atol=1e-12)


def test_features_are_uniform_on_minus_one_to_one():
    x = linear_model().splits.test.x
    assert -1 <= x.min() < -0.99
    assert 0.99 < x.max() <= 1
    assert x.var() == pytest.approx(1 / 3, rel=0.03)


def test_a_larger_split_leaves_the_others_as_they_are():
    small, large = (linear_model(sizes=(n, 5, 5)).splits for n in (5, 50))
    np.testing.assert_array_equal(small.test.x, large.test.x)
    np.testing.assert_array_equal(small.train.x, large.train.x[:5])
