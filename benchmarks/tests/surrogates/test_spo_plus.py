import numpy as np
import pytest
import torch

from lodl.domains import item_knapsack, shortest_path
from lodl.errors import InvalidInputError
from lodl.evaluation import regret
from lodl.losses import DecisionHinges, fit
from lodl.oracle import Oracle
from lodl.samplers import AllPerturbed
from lodl.training.torch import LearnedLossModule
from lodl_benchmarks.domains import web_advertising
from lodl_benchmarks.surrogates import SPOPlus

DOMAINS = {
    "min": shortest_path(0, sizes=(6, 1, 1), grid=(3, 3)),
    "max, with context": item_knapsack(0, sizes=(6, 1, 1), n_items=4, capacity=12),
}


def parts(sense):
    domain = DOMAINS[sense]
    train = domain.splits.train
    criterion = SPOPlus(domain.problem, train.y, context=train.context).double()
    noise = np.random.default_rng(0).normal(size=(2, *train.y.shape))
    y_hat = torch.tensor(train.y + noise * train.y.std()).requires_grad_()
    return domain, train, criterion, y_hat


@pytest.mark.parametrize("sense", DOMAINS)
def test_it_is_at_least_the_regret_and_zero_at_the_label(sense):
    domain, train, criterion, y_hat = parts(sense)
    losses = criterion(y_hat, torch.arange(6)).detach().numpy()
    found = regret(domain.problem, y_hat.detach().numpy(), train.y, context=train.context)
    assert (losses >= found - 1e-5).all()
    assert losses.max() > 0
    at_labels = criterion(torch.tensor(train.y)[None], torch.arange(6))
    np.testing.assert_allclose(at_labels, 0, atol=1e-5)


@pytest.mark.parametrize("sense", DOMAINS)
def test_hinges_over_all_decisions_are_the_same_loss(sense):
    domain, train, criterion, y_hat = parts(sense)
    samples = Oracle(domain.problem, progress=False).sample(
        train.y, AllPerturbed(scale=5 * train.y.std()), 400, context=train.context, slopes=True
    )
    hinges = fit(samples, DecisionHinges(min_weight=0.0, max_decisions=400), progress=False)
    module = LearnedLossModule(hinges, reduction="none", dtype=torch.float64)
    index = torch.arange(6)
    losses, expected = criterion(y_hat, index), module(y_hat, index)
    np.testing.assert_allclose(losses.detach(), expected.detach(), rtol=1e-4, atol=1e-4)
    (gradient,) = torch.autograd.grad(losses.sum(), y_hat)
    (expected_gradient,) = torch.autograd.grad(expected.sum(), y_hat)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-6)


def test_every_loss_and_every_label_is_a_call():
    _, _, criterion, y_hat = parts("min")
    criterion(y_hat[:, :4], torch.arange(4))
    assert criterion.n_calls == 6 + 2 * 4


def test_an_objective_that_is_not_linear_is_refused():
    domain = web_advertising(0, sizes=(2, 1, 1))
    with pytest.raises(InvalidInputError, match="`problem` must be a `LinearProblem`"):
        SPOPlus(domain.problem, domain.splits.train.y)
