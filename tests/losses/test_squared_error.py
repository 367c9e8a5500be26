import numpy as np
import pytest

from lodl.losses import is_squared_error, mean_squared_error, squared_error_loss


def test_mean_squared_error_averages_over_the_label_and_keeps_leading_axes():
    y = np.zeros((2, 3, 4))
    y_hat = np.zeros((5, 2, 3, 4))
    y_hat[1, 0, 2, 3] = 6.0
    expected = np.zeros((5, 2))
    expected[1, 0] = 36 / 12
    np.testing.assert_array_equal(mean_squared_error(y_hat, y), expected)


def test_mean_squared_error_of_tensors_equals_that_of_arrays():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    y_hat, y = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((3, 4, 5))
    of_tensors = mean_squared_error(torch.as_tensor(y_hat), torch.as_tensor(y))
    np.testing.assert_allclose(of_tensors.numpy(), mean_squared_error(y_hat, y), rtol=1e-14)


def test_squared_error_loss_is_the_mean_squared_error_in_units_of_the_variance():
    rng = np.random.default_rng(0)
    y, y_hat = rng.normal(3, 5, (20, 2, 3)), rng.normal(size=(20, 2, 3))
    expected = mean_squared_error(y_hat, y) / np.var(y, axis=0).mean()
    np.testing.assert_allclose(squared_error_loss(y).value(y_hat), expected)


def test_labels_that_are_all_equal_have_a_squared_error_loss():
    assert (squared_error_loss(np.ones((4, 2))).value(np.zeros((4, 2))) == 1).all()


def test_a_loss_with_different_weights_is_no_squared_error(make_loss):
    assert is_squared_error(squared_error_loss(np.ones((4, 2))))
    assert not is_squared_error(make_loss())
