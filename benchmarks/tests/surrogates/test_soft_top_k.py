import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lodl.errors import InvalidInputError
from lodl_benchmarks.surrogates import SoftTopK


def sinkhorn_top_k(scores, k, epsilon, n_iterations):
    """Soft top-k by Sinkhorn iterations in the log domain; differentiable by unrolling."""
    n_items = scores.shape[-1]
    log_items = torch.full_like(scores, -np.log(n_items))
    log_anchors = torch.tensor([(n_items - k) / n_items, k / n_items], dtype=scores.dtype).log()
    kernel = -((scores[..., None] - torch.tensor([0.0, 1.0], dtype=scores.dtype)) ** 2) / epsilon
    g = torch.zeros(*scores.shape[:-1], 2, dtype=scores.dtype)
    for _ in range(n_iterations):
        f = log_items - torch.logsumexp(kernel + g[..., None, :], -1)
        g = log_anchors - torch.logsumexp(kernel + f[..., None], -2)
    return n_items * torch.exp(kernel + f[..., None] + g[..., None, :])[..., 1]


@pytest.fixture
def scores():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(3, 4, 7, dtype=torch.float64, generator=generator).requires_grad_()


@pytest.mark.parametrize("k", [1, 3, 6])
def test_decisions_and_gradients_are_those_of_converged_sinkhorn_iterations(scores, k):
    weights = torch.linspace(-1, 2, 7, dtype=torch.float64)
    z = SoftTopK(k, epsilon=0.7)(scores)
    unrolled = sinkhorn_top_k(scores, k, 0.7, n_iterations=300)
    torch.testing.assert_close(z, unrolled)
    (gradient,) = torch.autograd.grad((z * weights).sum(), scores)
    (expected,) = torch.autograd.grad((unrolled * weights).sum(), scores)
    assert gradient.abs().max() > 0.01
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize(("k", "epsilon"), [(1, 0.3), (1, 2.0), (4, 1.0), (6, 1.0)])
def test_gradient_is_that_of_finite_differences(scores, k, epsilon):
    assert torch.autograd.gradcheck(SoftTopK(k, epsilon), (scores[:2, :1],))


@settings(deadline=None, max_examples=100, derandomize=True)
@given(
    y_hat=arrays(np.float64, (5, 9), elements=st.floats(-1e4, 1e4)),
    k=st.integers(1, 8),
    epsilon=st.floats(1e-3, 1e3),
)
def test_decision_lies_between_0_and_1_sums_to_k_and_keeps_the_order(y_hat, k, epsilon):
    z = SoftTopK(k, epsilon)(torch.from_numpy(y_hat)).numpy()
    assert (z >= 0).all()
    assert (z <= 1).all()
    # A threshold near 1e7 is known to 1e-9 only.
    np.testing.assert_allclose(z.sum(-1), k, atol=1e-7)
    ordered = np.take_along_axis(z, y_hat.argsort(-1), -1)
    # Vectorised exponentials of equal numbers may differ in their last digit.
    assert (np.diff(ordered) >= -4 * np.finfo(float).eps).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_without_entropy_the_choice_is_the_hard_one_with_gradient_zero(dtype):
    y_hat = torch.tensor([[0.1, 5.0, 3.0, -2.0]], dtype=dtype, requires_grad=True)
    z = SoftTopK(2, epsilon=1e-6)(y_hat)
    assert z.tolist() == [[0.0, 1.0, 1.0, 0.0]]
    z[0, 1].backward()
    assert y_hat.grad.tolist() == [[0.0] * 4]


def test_equal_items_share_equally():
    z = SoftTopK(2)(torch.full((1, 5), 3.0))
    torch.testing.assert_close(z, torch.full((1, 5), 0.4))


def test_single_precision_stays_single_and_agrees_with_double(scores):
    surrogate = SoftTopK(2, epsilon=0.5)
    z = surrogate(scores.float())
    assert z.dtype == torch.float32
    torch.testing.assert_close(z.double(), surrogate(scores), atol=1e-6, rtol=1e-5)


def test_an_instance_depends_on_no_other(scores):
    surrogate = SoftTopK(2)
    alone = surrogate(scores[1, 2:3])
    torch.testing.assert_close(surrogate(scores)[1, 2:3], alone, atol=1e-14, rtol=0)


def test_a_second_derivative_is_refused(scores):
    loss = SoftTopK(2)(scores).square().sum()
    (gradient,) = torch.autograd.grad(loss, scores, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_objective_is_the_worth_of_the_items_in_their_shares():
    value = SoftTopK(1).objective(torch.tensor([[0.25, 0.75]]), torch.tensor([[4.0, 8.0]]))
    assert value.tolist() == [7.0]


def test_more_items_than_there_are_cannot_be_chosen():
    with pytest.raises(InvalidInputError, match="`k` must be below the 3 items, got 3"):
        SoftTopK(3)(torch.zeros(1, 3))


def test_entropy_must_have_a_weight():
    with pytest.raises(InvalidInputError, match="`epsilon` must be above 0, got 0"):
        SoftTopK(1, epsilon=0)
