"""Following the advice improves the loss on small versions of the paper's domains."""

import numpy as np
import pytest
import torch

import lodl
from lodl.domains import TopK
from lodl.evaluation import diagnose
from lodl.training.torch import LearnedLossModule, mlp
from lodl_benchmarks.convex_directed_quadratic import ConvexDirectedQuadratic
from lodl_benchmarks.domains import DOMAINS, WebAdvertising

pytestmark = pytest.mark.slow

SETTINGS: dict[type, tuple[float, int]] = {
    TopK: (0.1, 200),
    WebAdvertising: (1e-3, 300),
}  # learning rates and steps


@pytest.fixture(scope="module")
def linear():
    return DOMAINS["linear_model"](0, sizes=(30, 10, 1))


@pytest.fixture(scope="module")
def web():
    return DOMAINS["web_advertising"](0, sizes=(20, 5, 1))


def labels_of(domain):
    return np.concatenate([domain.splits.train.y, domain.splits.validation.y])


def model_of(domain):
    """Returns the model of the paper, which predicts item by item."""
    part = domain.splits.train
    network = {"hidden": (500,), "output": "relu"}
    return mlp(
        part.x.shape[-1],
        part.y.shape[1:],
        n_items=part.x.shape[1],
        **(network if isinstance(domain.problem, WebAdvertising) else {"hidden": ()}),
    )


def learn_and_diagnose(domain, *, scale, n_samples=500):
    """Learns a loss, trains the domain's model on it, and looks where that model predicts."""
    y, splits = labels_of(domain), domain.splits
    oracle = lodl.Oracle(domain.problem)
    loss = lodl.learn_loss(
        oracle,
        oracle.instances(y, keys=range(len(y))),
        family=lodl.DirectedWeightedMSE(),
        sampler=lodl.AllPerturbed(scale),
        n_samples=n_samples,
    )
    x = torch.as_tensor(np.concatenate([splits.train.x, splits.validation.x])).float()
    model, criterion, index = model_of(domain), LearnedLossModule(loss), range(len(splits.train.y))
    rate, n_steps = SETTINGS[type(domain.problem)]
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(n_steps):
        optimiser.zero_grad()
        criterion(model(x[index]), index).backward()
        optimiser.step()
    return diagnose(loss, domain.problem, y, model(x).detach().double().numpy())


def error_of(diagnosis):
    """Return the mean difference of loss and regret."""
    return np.abs(diagnosis.losses - diagnosis.regrets).mean()


def names(diagnosis):
    return [finding.name for finding in diagnosis.findings]


def test_a_scale_far_too_large_is_found_out_in_the_linear_model(linear):
    before = learn_and_diagnose(linear, scale=10.0)
    assert names(before)[0] == "scale"
    proposed = before.scale * before.size_ratio
    after = learn_and_diagnose(linear, scale=proposed)
    assert after.regret < 0.1 * before.regret


def test_too_few_samples_are_found_out_in_the_linear_model(linear):
    x, y = linear.splits.train.x[..., 0], linear.splits.train.y
    y_hat = np.polyval(np.polyfit(x.ravel(), y.ravel(), deg=1), x)  # the two-stage model

    def look(n_samples):
        loss = lodl.learn_loss(
            linear.problem,
            y,
            family=ConvexDirectedQuadratic(),
            sampler=lodl.AllPerturbed(1.0),
            n_samples=n_samples,
        )
        return diagnose(loss, linear.problem, y, y_hat)

    before, after = look(50), look(2000)
    assert names(before)[0] == "more samples"
    assert after.summary.error_held_out.median < 0.9 * before.summary.error_held_out.median
    assert error_of(after) < 0.9 * error_of(before)


def test_a_scale_far_too_small_is_found_out_in_web_advertising(web):
    before = learn_and_diagnose(web, scale=0.002, n_samples=100)
    assert "scale" in names(before)
    proposed = before.scale * before.size_ratio
    after = learn_and_diagnose(web, scale=proposed, n_samples=100)
    assert after.regret < before.regret


def test_a_scale_far_too_large_is_found_out_in_a_portfolio():
    domain = DOMAINS["portfolio"](0, sizes=(10, 10, 10), n_stocks=20)
    y, context = domain.splits.train.y, domain.splits.train.context
    y_hat = np.zeros_like(y)  # about all that can be known of tomorrow's returns

    def learn(scale):
        return lodl.learn_loss(
            domain.problem,
            y,
            context=context,
            family=lodl.WeightedMSE(),
            sampler=lodl.AllPerturbed(scale),
            n_samples=200,
        )

    before = diagnose(learn(0.3), domain.problem, y, y_hat, context=context)
    assert "scale" in names(before)
    proposed = before.scale * before.size_ratio
    after = diagnose(learn(proposed), domain.problem, y, y_hat, context=context)
    assert error_of(after) < 0.7 * error_of(before)
