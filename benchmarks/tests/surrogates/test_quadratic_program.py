import numpy as np
import pytest
import torch

from lodl.errors import InvalidInputError
from lodl_benchmarks.domains import Portfolio
from lodl_benchmarks.surrogates import QuadraticProgram

N_INSTANCES, N_STOCKS = 3, 8
BOTH = pytest.mark.parametrize("fully_invested", [True, False])


@pytest.fixture
def risk():
    returns = np.random.default_rng(0).normal(size=(N_INSTANCES, N_STOCKS, 12))
    return np.stack([np.corrcoef(r) for r in returns]) + 0.1 * np.eye(N_STOCKS)


@pytest.fixture
def y_hat():
    # Returns about zero: with money allowed to stay aside, some of it does.
    values = 0.03 * np.random.default_rng(1).normal(size=(2, N_INSTANCES, N_STOCKS))
    return torch.from_numpy(values).requires_grad_()


@BOTH
def test_gradient_is_that_of_finite_differences(risk, y_hat, fully_invested):
    surrogate = QuadraticProgram(Portfolio(fully_invested=fully_invested))
    z = surrogate(y_hat, risk)
    assert (z.sum(-1) < 0.999).any() != fully_invested
    assert (z < 1e-9).any()
    # Far from a change of the active set, a step of 1e-6 stays on it.
    assert torch.autograd.gradcheck(lambda y: surrogate(y, risk), (y_hat,))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of cvxpylayers with NumPy 2
@BOTH
def test_decision_and_gradient_are_those_of_a_conic_layer(risk, y_hat, fully_invested):
    layers = pytest.importorskip("cvxpylayers.torch", reason="cvxpylayers is not installed")
    cp = pytest.importorskip("cvxpy")
    z, root, mean = (
        cp.Variable(N_STOCKS),
        cp.Parameter((N_STOCKS, N_STOCKS)),
        cp.Parameter(N_STOCKS),
    )
    budget = cp.sum(z) == 1 if fully_invested else cp.sum(z) <= 1
    value = mean @ z - 0.1 * cp.sum_squares(root @ z)
    program = cp.Problem(cp.Maximize(value), [z >= 0, budget])
    layer = layers.CvxpyLayer(program, parameters=[root, mean], variables=[z])
    roots = torch.from_numpy(np.linalg.cholesky(risk).swapaxes(-1, -2).copy())
    (expected,) = layer(roots, y_hat[0], solver_args={"eps": 1e-10})
    decision = QuadraticProgram(Portfolio(fully_invested=fully_invested))(y_hat, risk)[0]
    torch.testing.assert_close(decision, expected, atol=1e-6, rtol=0)
    weights = torch.linspace(-1, 2, N_STOCKS, dtype=torch.float64)
    (gradient,) = torch.autograd.grad((decision * weights).sum(), y_hat)
    (reference,) = torch.autograd.grad((expected * weights).sum(), y_hat)
    assert gradient.abs().max() > 0.1
    torch.testing.assert_close(gradient, reference, atol=1e-4, rtol=1e-4)


def test_decisions_are_the_oracles(risk, y_hat):
    problem = Portfolio()
    decisions = QuadraticProgram(problem)(y_hat, risk).detach().numpy()
    for batch in range(2):
        for instance in range(N_INSTANCES):
            prediction = y_hat[batch, instance].detach().numpy()
            expected = problem.solve(prediction, risk[instance])
            np.testing.assert_array_equal(decisions[batch, instance], expected)


def test_objective_is_that_of_the_problem(risk, y_hat):
    problem = Portfolio(risk_aversion=0.3)
    surrogate = QuadraticProgram(problem)
    y = y_hat[1].detach()
    z = surrogate(y_hat, risk).detach()
    values = surrogate.objective(z, y, risk)
    expected = [
        [
            problem.objective(z_i, y_i, q_i)
            for z_i, y_i, q_i in zip(zs, y.numpy(), risk, strict=True)
        ]
        for zs in z.numpy()
    ]
    np.testing.assert_allclose(values.numpy(), expected)


def test_a_portfolio_of_one_stock_has_gradient_zero(risk):
    y_hat = torch.zeros(N_INSTANCES, N_STOCKS, dtype=torch.float64)
    y_hat[:, 2] = 50.0
    y_hat.requires_grad_()
    z = QuadraticProgram()(y_hat, risk)
    np.testing.assert_allclose(z[:, 2].detach(), 1.0)
    z[:, 2].sum().backward()
    torch.testing.assert_close(y_hat.grad, torch.zeros_like(y_hat))


def test_no_investment_at_all_has_gradient_zero(risk):
    y_hat = torch.full((N_INSTANCES, N_STOCKS), -1.0, requires_grad=True)
    z = QuadraticProgram(Portfolio(fully_invested=False))(y_hat, risk)
    torch.testing.assert_close(z, torch.zeros_like(z), atol=1e-12, rtol=0)
    z.sum().backward()
    assert (y_hat.grad == 0).all()


def test_single_precision_stays_single(risk, y_hat):
    single = y_hat.detach().float().requires_grad_()
    surrogate = QuadraticProgram()
    weights = torch.linspace(-1, 2, N_STOCKS)
    z = surrogate(single, torch.from_numpy(risk).float())
    (z * weights).sum().backward()
    (surrogate(y_hat, risk) * weights).sum().backward()
    assert (z.dtype, single.grad.dtype) == (torch.float32, torch.float32)
    torch.testing.assert_close(single.grad.double(), y_hat.grad, atol=1e-4, rtol=1e-4)


def test_a_context_that_numpy_cannot_read_is_moved_first(risk, y_hat):
    class OnDevice(torch.Tensor):
        """Refuses NumPy, as a tensor on a GPU does."""

        def __array__(self, *_, **__):
            raise TypeError("can't convert a tensor on a device to numpy")

    context = torch.from_numpy(risk).as_subclass(OnDevice)
    torch.testing.assert_close(QuadraticProgram()(y_hat, context), QuadraticProgram()(y_hat, risk))


@pytest.mark.parametrize("context", [None, np.eye(N_STOCKS)])
def test_one_matrix_per_instance_is_demanded(y_hat, context):
    with pytest.raises(InvalidInputError, match=r"one matrix Q per instance, shape \(3, 8, 8\)"):
        QuadraticProgram()(y_hat, context)
