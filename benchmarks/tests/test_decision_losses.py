"""Models with a bounded output do not drift to its ends along directions that no decision sees."""

import numpy as np
import pytest
import torch

from lodl import AllPerturbed, DecisionHinges, DecisionRanking, Oracle
from lodl.losses import FitStatus, fit
from lodl.training.torch import LearnedLossModule
from lodl_benchmarks.domains import portfolio, web_advertising

pytestmark = pytest.mark.slow

N = 30
every_family = pytest.mark.parametrize("family", [DecisionHinges(), DecisionRanking()], ids=repr)


def trained_predictions(domain, family, output):
    """Trains a small network on the first instances and returns its loss and its predictions."""
    data = domain.splits.train
    context = None if data.context is None else data.context[:N]
    how = {"context": context, "slopes": True}
    loss = fit(Oracle(domain.problem).sample(data.y[:N], AllPerturbed("auto"), 20, **how), family)
    torch.manual_seed(0)
    x = torch.tensor(data.x[:N], dtype=torch.float32)
    model = torch.nn.Sequential(
        torch.nn.Linear(x.shape[-1], 50),
        torch.nn.ReLU(),
        torch.nn.Linear(50, data.y[0].size * x.shape[-1] // data.x[0].size),
        output,
    )
    criterion, optimiser = LearnedLossModule(loss), torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(200):
        optimiser.zero_grad()
        y_hat = model(x).reshape(N, *loss.label_shape)
        criterion(y_hat, range(N)).backward()
        optimiser.step()
    return loss, y_hat.detach().numpy()


@every_family
def test_a_tanh_output_does_not_saturate_on_portfolio(family):
    loss, y_hat = trained_predictions(portfolio(0), family, torch.nn.Tanh())
    assert np.abs(y_hat).max() < 0.5
    assert np.abs(y_hat.mean()) < 3 * np.abs(loss.y).mean()  # the free direction


@every_family
def test_a_relu_output_does_not_die_on_web_advertising(family):
    loss, y_hat = trained_predictions(web_advertising(0), family, torch.nn.ReLU())
    matters = loss.errors.status == FitStatus.FITTED
    assert (y_hat[matters] > 0).any(axis=(1, 2)).mean() > 0.9
    assert y_hat.max() < 10 * loss.y.max()
