"""The losses of the paper's example of two agents, over the two predictions."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import torch

from lodl._typing import Array, InstanceContext
from lodl.losses import Family, fit
from lodl.oracle import Oracle, Samples
from lodl.problems import Problem
from lodl.samplers import AllPerturbed
from lodl_benchmarks.experiments._rounded import rounded, rounded_rows
from lodl_benchmarks.paper import LossesFigure, LossesSettings, LossShape
from lodl_benchmarks.runner import METHODS, Learned
from lodl_benchmarks.surrogates import SoftTopK, SurrogateLoss, mean_squared_error

_LABEL = np.array([0.0, 1.0])
_SWAPPED = np.array([1.0, 0.0])
_RANGE = (-1.0, 2.0)  # of both predictions: label and swapped prediction lie well within
_N_ON_LINE = 301

_Loss: TypeAlias = Callable[[Array], Array]
"""Losses (k,) of predictions (k, 2)."""


class PickOne(Problem):
    """Pick the agent of the least disutility.

    z = argmin_i y_hat_i,   DL(y_hat, y) = y_z
    """

    sense = "min"

    def solve(self, y_hat: Array, context: InstanceContext) -> int:
        return int(y_hat.argmin())

    def objective(self, z: int, y: Array, context: InstanceContext) -> float:
        return float(y[z])


def losses_figure(settings: LossesSettings) -> LossesFigure:
    """Return every loss around the label (0, 1)."""
    axis, line = np.linspace(*_RANGE, settings.n_grid), np.linspace(*_RANGE, _N_ON_LINE)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)
    on_line = np.stack([line, 1 - line], axis=-1)
    return LossesFigure(
        settings=settings,
        label=tuple(_LABEL.tolist()),
        swapped=tuple(_SWAPPED.tolist()),
        axis=rounded(axis),
        line=rounded(line),
        losses=tuple(
            LossShape(
                name=name,
                kind=kind,
                surface=rounded_rows(loss(grid.reshape(-1, 2)).reshape(grid.shape[:2])),
                on_line=rounded(loss(on_line)),
                descent=rounded(_descent(loss)),
            )
            for name, kind, loss in _losses(settings)
        ),
    )


def _losses(settings: LossesSettings) -> Iterator[tuple[str, str, _Loss]]:
    """Yield name, kind and function."""
    problem = PickOne()
    oracle, label = Oracle(problem, progress=False), _LABEL[np.newaxis]
    yield "decision loss", "true", lambda y_hat: oracle.decision_loss(y_hat[:, None], label)[:, 0]
    yield "2-stage", "handcrafted", lambda y_hat: mean_squared_error(y_hat, _LABEL[np.newaxis])
    # The paper's y_hat_A - y_hat_B, scaled to 0 at the label and 1 at the swapped prediction.
    yield "linear", "handcrafted", lambda y_hat: (y_hat[:, 0] - y_hat[:, 1] + 1) / 2
    yield "DFL", "handcrafted", _through_soft_choice(settings.epsilon)
    samples = oracle.sample(
        oracle.instances(label, keys=[0]),
        AllPerturbed(settings.scale),
        settings.n_samples,
        random_state=settings.seed,
    )
    for name, method in METHODS.items():
        if isinstance(method, Learned) and not method.needs_slopes:
            yield name, "learned", _learn(samples, method.family)


def _through_soft_choice(epsilon: float) -> _Loss:
    """Return the decision loss of soft top-1, which takes utilities: here minus disutilities."""
    criterion = SurrogateLoss(SoftTopK(k=1, epsilon=epsilon), mse_weight=0.0)
    utility = torch.from_numpy(-_LABEL)

    def loss(y_hat: Array) -> Array:
        losses: Array = criterion(torch.from_numpy(-y_hat), utility.expand(len(y_hat), 2)).numpy()
        return losses

    return loss


def _learn(samples: Samples, family: Family) -> _Loss:
    phi = fit(samples, family, progress=False).phi
    return lambda y_hat: np.asarray(family.value(phi, (y_hat - _LABEL)[np.newaxis])[0])


def _descent(loss: _Loss) -> Array:
    """Return the negative gradient at the swapped prediction, by central differences."""
    steps = 1e-4 * np.eye(2)
    ahead, behind = loss(_SWAPPED + steps), loss(_SWAPPED - steps)
    return (behind - ahead) / 2e-4
