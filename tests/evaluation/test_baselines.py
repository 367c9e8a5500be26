import numpy as np
import pytest

from lodl.errors import InvalidInputError
from lodl.evaluation import constant_predictions, random_predictions

Y_TRAIN = np.array([[0.0, 2.0], [2.0, 6.0], [1.0, 1.0]])


def test_constant_prediction_is_the_mean_of_each_coordinate():
    predictions = constant_predictions(Y_TRAIN, 4)
    np.testing.assert_array_equal(predictions, [[1.0, 3.0]] * 4)


def test_constant_predictions_keep_the_shape_of_a_label():
    assert constant_predictions(np.ones((3, 5, 10)), 7).shape == (7, 5, 10)


def test_constant_predictions_can_be_changed_one_by_one():
    predictions = constant_predictions(Y_TRAIN, 2)
    predictions[0] = 0
    np.testing.assert_array_equal(predictions[1], [1.0, 3.0])


def test_constant_predictions_of_no_instances_are_refused():
    with pytest.raises(InvalidInputError, match="`n_instances` must be a whole number"):
        constant_predictions(Y_TRAIN, 0)


def test_random_predictions_are_uniform_and_depend_on_the_seed_alone():
    draws = random_predictions((10_000, 2), seed=1)
    assert draws.min() >= 0
    assert draws.max() <= 1
    assert draws.mean() == pytest.approx(0.5, abs=0.02)
    assert np.array_equal(draws, random_predictions((10_000, 2), seed=1))
    assert not np.array_equal(draws, random_predictions((10_000, 2), seed=2))
