import numpy as np

from lodl.losses import is_squared_error, squared_error_loss


def test_squared_error_loss_is_the_mean_squared_error_in_units_of_the_variance():
    rng = np.random.default_rng(0)
    y, y_hat = rng.normal(3, 5, (20, 2, 3)), rng.normal(size=(20, 2, 3))
    expected = np.square(y_hat - y).mean(axis=(1, 2)) / np.var(y, axis=0).mean()
    np.testing.assert_allclose(squared_error_loss(y).value(y_hat), expected)


def test_labels_that_are_all_equal_have_a_squared_error_loss():
    assert (squared_error_loss(np.ones((4, 2))).value(np.zeros((4, 2))) == 1).all()


def test_a_loss_with_different_weights_is_no_squared_error(make_loss):
    assert is_squared_error(squared_error_loss(np.ones((4, 2))))
    assert not is_squared_error(make_loss())
