import numpy as np

from lodl.losses import mean_squared_error, squared_error_loss


def test_it_is_the_mean_squared_error_in_units_of_the_variance():
    rng = np.random.default_rng(0)
    y, y_hat = rng.normal(3, 5, (20, 2, 3)), rng.normal(size=(20, 2, 3))
    expected = mean_squared_error(y_hat, y) / np.var(y, axis=0).mean()
    np.testing.assert_allclose(squared_error_loss(y).value(y_hat), expected)


def test_labels_that_are_all_equal_have_a_loss_too():
    assert (squared_error_loss(np.ones((4, 2))).value(np.zeros((4, 2))) == 1).all()
