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
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._frames import take_rows
from lodl._typing import Array
from lodl.losses import LearnedLoss

Folds = list[npt.NDArray[np.intp]]
"""The instances that each fold holds out."""

Refit = Callable[[Array, npt.NDArray[np.intp]], Callable[[Any], Array]]
"""Fits a model to targets of the instances at an index; returns its `predict`."""


def shifted_targets(loss: LearnedLoss, x: Any, refit: Refit, folds: Folds) -> Iterator[Array]:
    """Yield the labels, then the targets of one round after another."""
    targets, g_bar, mu = loss.y, np.zeros(loss.y.shape), 0.0
    k = 0
    while True:
        yield targets
        p = _out_of_fold(x, targets, refit, folds)
        g = loss.gradient(p)
        if k == 0:
            mu = 2 * _rms(g) / (_rms(p - loss.y) or 1.0)
        gamma = 2 / (k + 2)
        g_bar = (1 - gamma) * g_bar + gamma * g
        targets = loss.y - g_bar / (mu or 1.0)
        k += 1


def interleaved_folds(n_instances: int, n_folds: int, seed: int) -> Folds:
    """Return a random partition of the instances into folds of nearly equal size."""
    order = np.random.default_rng(seed).permutation(n_instances)
    return [np.sort(order[start::n_folds]) for start in range(min(n_folds, n_instances))]


def _out_of_fold(x: Any, targets: Array, refit: Refit, folds: Folds) -> Array:
    p = np.empty(targets.shape)
    for held_out in folds:
        rest = np.setdiff1d(np.arange(len(targets)), held_out)
        p[held_out] = refit(targets, rest)(take_rows(x, held_out))
    return p


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
