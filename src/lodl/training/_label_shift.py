r"""Any regressor that minimises squared error, trained on a learned loss by shifted labels.

The model m should minimise sum_i L_i(m(x_i)), but its `fit` minimises squared error only. Adding a
weak squared error, mu/2 |m(x) - y|^2 + L(m(x)), the dual problem asks for labels shifted by a
subgradient g of L, t = y - g / mu, and is solved by Frank-Wolfe: with p the predictions of the
model fitted to the present targets,

    g_bar <- (1 - gamma) g_bar + gamma grad L(p),   gamma = 2 / (k + 2),   t = y - g_bar / mu

The predictions p of training instances are out of fold: fitted ones are too good to see where the
model errs. mu = 2 rms(g) / rms(p - y), fixed in the first round, makes the first shift half as
large as the model's errors, whatever the unit of the loss.
"""

from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from lodl._typing import Array
from lodl.losses import LearnedLoss


def shifted_targets(
    loss: LearnedLoss, out_of_fold: Callable[[Array, None], Array]
) -> Iterator[tuple[Array, None]]:
    """Yield the labels, then the targets of one round after another, all without weights.

    Args:
        loss: The learned loss.
        out_of_fold: Returns out-of-fold predictions of a model that is fitted to targets.
    """
    targets, g_bar, mu = loss.y, np.zeros(loss.y.shape), 0.0
    for k in count():
        yield targets, None
        p = out_of_fold(targets, None)
        g = loss.gradient(p)
        mu = mu or pull(g, p - loss.y)
        gamma = 2 / (k + 2)
        g_bar = (1 - gamma) * g_bar + gamma * g
        targets = loss.y - g_bar / mu


def pull(g: Array, d: Array) -> float:
    """Return mu for gradients g at errors d."""
    return 2 * _rms(g) / (_rms(d) or 1.0) or 1.0


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
