import numpy as np
import pytest
import torch

from lodl.errors import InvalidInputError
from lodl_benchmarks.surrogates import (
    MultilinearRelaxation,
    QuadraticProgram,
    SoftTopK,
    Surrogate,
    SurrogateLoss,
    mean_squared_error,
)

N_INSTANCES = 4
SURROGATES = {
    "soft top-k": (SoftTopK(k=2), (6,), None),
    "multilinear": (MultilinearRelaxation(budget=2), (5, 3), None),
    "quadratic program": (QuadraticProgram(), (6,), np.stack([np.eye(6)] * N_INSTANCES)),
}
EACH = pytest.mark.parametrize(
    ("surrogate", "label_shape", "context"), SURROGATES.values(), ids=SURROGATES
)


def draw(*shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return 0.2 * torch.rand(*shape, dtype=torch.float64, generator=generator)


@EACH
def test_many_initialisations_at_once_are_the_same_as_one_by_one(surrogate, label_shape, context):
    y = draw(N_INSTANCES, *label_shape, seed=0)
    y_hat = draw(2, 3, N_INSTANCES, *label_shape, seed=1).requires_grad_()
    criterion = SurrogateLoss(surrogate)
    losses = criterion(y_hat, y, context)
    assert losses.shape == (2, 3, N_INSTANCES)
    (gradient,) = torch.autograd.grad(losses.sum(), y_hat)
    for i, j in np.ndindex(2, 3):
        single = y_hat[i, j].detach().requires_grad_()
        loss = criterion(single, y, context)
        loss.sum().backward()
        torch.testing.assert_close(losses[i, j], loss)
        torch.testing.assert_close(gradient[i, j], single.grad)


@EACH
def test_training_the_prediction_itself_raises_its_worth(surrogate, label_shape, context):
    y = draw(N_INSTANCES, *label_shape, seed=2)
    y_hat = draw(N_INSTANCES, *label_shape, seed=3).requires_grad_()
    criterion = SurrogateLoss(surrogate, mse_weight=0)
    optimiser = torch.optim.SGD([y_hat], lr=0.01)
    before = criterion(y_hat, y, context).sum()
    for _ in range(5):
        optimiser.zero_grad()
        criterion(y_hat, y, context).sum().backward()
        optimiser.step()
    assert criterion(y_hat, y, context).sum() < before


@EACH
def test_squared_error_is_added_with_its_weight(surrogate, label_shape, context):
    y = draw(N_INSTANCES, *label_shape, seed=4)
    y_hat = draw(N_INSTANCES, *label_shape, seed=5)
    plain = SurrogateLoss(surrogate, mse_weight=0)(y_hat, y, context)
    regularised = SurrogateLoss(surrogate, mse_weight=3)(y_hat, y, context)
    mse = (y_hat - y).square().reshape(N_INSTANCES, -1).mean(-1)
    torch.testing.assert_close(regularised - plain, 3 * mse)


class _Bet(Surrogate):
    """Stakes the prediction, and is paid the label."""

    def __init__(self, sense):
        self.sense = sense

    def __call__(self, y_hat, context=None):
        return y_hat

    def objective(self, z, y, context=None):
        return (z * y).sum(-1)


@pytest.mark.parametrize(("sense", "expected"), [("min", 11.0), ("max", -11.0)])
def test_decision_is_scored_under_the_label_and_lower_is_better(sense, expected):
    criterion = SurrogateLoss(_Bet(sense), mse_weight=0)
    loss = criterion(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
    assert loss.tolist() == [expected]


def test_predictions_of_another_shape_are_refused():
    with pytest.raises(InvalidInputError, match=r"`y_hat` must have shape \(\*batch, \*y.shape\)"):
        SurrogateLoss(SoftTopK(1))(torch.zeros(4, 3), torch.zeros(4, 5))


@pytest.mark.parametrize("weight", [-1.0, float("nan")])
def test_a_negative_weight_is_refused(weight):
    with pytest.raises(InvalidInputError, match="`mse_weight` must be at least 0"):
        SurrogateLoss(SoftTopK(1), mse_weight=weight)


def test_mean_squared_error_averages_over_the_label_and_keeps_leading_axes():
    y = np.zeros((2, 3, 4))
    y_hat = np.zeros((5, 2, 3, 4))
    y_hat[1, 0, 2, 3] = 6.0
    expected = np.zeros((5, 2))
    expected[1, 0] = 36 / 12
    np.testing.assert_array_equal(mean_squared_error(y_hat, y), expected)


def test_mean_squared_error_of_tensors_equals_that_of_arrays():
    rng = np.random.default_rng(0)
    y_hat, y = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((3, 4, 5))
    of_tensors = mean_squared_error(torch.as_tensor(y_hat), torch.as_tensor(y))
    np.testing.assert_allclose(of_tensors.numpy(), mean_squared_error(y_hat, y), rtol=1e-14)
