import numpy as np
import pytest

from lodl.losses import mean_squared_error


def test_two_stage_loss_averages_over_the_label_and_keeps_leading_axes():
    y = np.zeros((2, 3, 4))
    y_hat = np.zeros((5, 2, 3, 4))
    y_hat[1, 0, 2, 3] = 6.0
    expected = np.zeros((5, 2))
    expected[1, 0] = 36 / 12
    np.testing.assert_array_equal(mean_squared_error(y_hat, y), expected)


def test_two_stage_loss_of_tensors_is_that_of_arrays():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    y_hat, y = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((3, 4, 5))
    of_tensors = mean_squared_error(torch.as_tensor(y_hat), torch.as_tensor(y))
    np.testing.assert_allclose(of_tensors.numpy(), mean_squared_error(y_hat, y), rtol=1e-14)
