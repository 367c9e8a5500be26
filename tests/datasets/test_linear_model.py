import numpy as np
import pytest

from lodl.datasets import linear_model
from lodl.errors import InvalidInputError


def test_sizes_and_shapes_are_the_papers():
    splits = linear_model()
    assert [len(part.y) for part in (splits.train, splits.validation, splits.test)] == [
        200,
        200,
        400,
    ]
    assert splits.train.x.shape == (200, 50, 1)
    assert splits.train.y.shape == (200, 50)
    assert splits.train.context is None


def test_labels_are_the_cubic_of_the_features():
    test = linear_model(3).test
    x = test.x[..., 0]
    np.testing.assert_allclose(test.y, 10 * x * x * x - 6.5 * x, atol=1e-12)


def test_features_are_uniform_on_minus_one_to_one():
    x = linear_model().test.x
    assert -1 <= x.min() < -0.99
    assert 0.99 < x.max() <= 1
    assert x.var() == pytest.approx(1 / 3, rel=0.03)


def test_the_papers_printed_range_can_be_asked_for():
    assert linear_model(x_range=(0.0, 1.0)).train.x.min() >= 0


def test_a_larger_split_leaves_the_others_as_they_are():
    small, large = linear_model(sizes=(5, 5, 5)), linear_model(sizes=(50, 5, 5))
    np.testing.assert_array_equal(small.test.x, large.test.x)
    np.testing.assert_array_equal(small.train.x, large.train.x[:5])


@pytest.mark.parametrize("sizes", [(1, 2), (0, 1, 1), (1, 1, 2.5)])
def test_sizes_must_be_three_positive_numbers(sizes):
    with pytest.raises(InvalidInputError, match="`sizes` must be"):
        linear_model(sizes=sizes)


def test_a_seed_must_be_a_whole_number():
    with pytest.raises(InvalidInputError, match="`seed` must be a whole number of at least 0"):
        linear_model(-1)
