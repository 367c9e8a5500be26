r"""Targets and weights for regressors that minimise squared error only.

A model m should minimise sum_i L_i(m(x_i)), but its `fit` minimises squared error. So it is fitted
again and again, to targets t that depend on its out-of-fold predictions p.

**Shifted labels**, for losses made of decisions. Adding a weak squared error,
mu/2 |m(x) - y|^2 + L(m(x)), the dual problem is a fit to labels shifted by a subgradient g of L,
t = y - g / mu, and is solved by Frank-Wolfe:

    g_bar <- (1 - gamma) g_bar + gamma grad L(p),   gamma = 2 / (k + 2),   t = y - g_bar / mu

mu = 2 rms(g) / rms(p - y), fixed in the first round, makes the first shift half as large as the
model's errors, whatever the unit of the loss.

**Weighted targets**, for losses fitted to regrets, which are nearly quadratic. Around p a loss with
gradient g and curvature h is, coordinate by coordinate,

    L(v) ~ sum_i h_i / 2 (v_i - t_i)^2 + constant,   t = p - g / h

so its minimum is a weighted least-squares fit to t. As in boosting, h is the curvature plus its
mean: steps are half as long as Newton's, and never longer. On newsvendors this was better than
shifted labels. Hinges have no curvature.
"""

from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from lodl._typing import Array, Index
from lodl.losses import LearnedLoss

Targets = tuple[Array, Array | None]
"""Targets and their weights, both in the shape of the labels. None weighs all alike."""


def shifted_targets(
    loss: LearnedLoss, index: Index, out_of_fold: Callable[[Array, Array | None], Array]
) -> Iterator[Targets]:
    """Yield the labels, then the shifted labels of one round after another."""
    y = loss.y[index]
    targets, g_bar, mu = y, np.zeros(y.shape), 0.0
    for k in count():
        yield targets, None
        p = out_of_fold(targets, None)
        g = loss.gradient(p, index)
        mu = mu or 2 * _rms(g) / (_rms(p - y) or 1.0) or 1.0
        gamma = 2 / (k + 2)
        g_bar = (1 - gamma) * g_bar + gamma * g
        targets = y - g_bar / mu


def weighted_targets(
    loss: LearnedLoss, index: Index, out_of_fold: Callable[[Array, Array | None], Array]
) -> Iterator[Targets]:
    """Yield the labels without weights, then targets and weights of one round after another."""
    targets: Array = loss.y[index]
    weights: Array | None = None
    while True:
        yield targets, weights
        p = out_of_fold(targets, weights)
        curvature = np.maximum(loss.curvature(p, index), 0.0)
        h = curvature + (float(curvature.mean()) or 1.0)
        targets, weights = p - loss.gradient(p, index) / h, h / h.mean()


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
