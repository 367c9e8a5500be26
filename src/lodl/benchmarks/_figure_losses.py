"""The paper's example of two agents: what each loss looks like over the two predictions."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch

from lodl._typing import Array, InstanceContext
from lodl.benchmarks._methods import METHODS, Learned
from lodl.benchmarks._rounded import rounded
from lodl.benchmarks._versions import versions
from lodl.benchmarks.surrogates import DecisionLoss, SoftTopK
from lodl.fitting import fit
from lodl.losses import Family, mean_squared_error
from lodl.oracle import OracleSamples, evaluate
from lodl.problems import Problem
from lodl.problems._regret import decision_losses
from lodl.samplers import AllPerturbed

_LABEL = np.array([0.0, 1.0])
_SWAPPED = np.array([1.0, 0.0])
_RANGE = (-1.0, 2.0)  # of both predictions: label and swapped prediction lie well within
_N_ON_LINE = 301

_Loss: TypeAlias = Callable[[Array], Array]
"""Losses (k,) of predictions (k, 2)."""


@dataclass(frozen=True)
class LossesSettings:
    """What the figure of the losses is made of.

    Attributes:
        n_samples: Candidates from which the losses are learned.
        scale: Standard deviation of the candidates around the label.
        epsilon: Softness of the handcrafted surrogate.
        n_grid: Predictions along each axis of a surface.
        seed: Of the candidates.
        versions: Of the packages: under others it is made again.
    """

    n_samples: int
    scale: float = 1.0
    epsilon: float = 0.5
    n_grid: int = 61
    seed: int = 0
    versions: Mapping[str, str] = field(default_factory=versions)


class PickOne(Problem):
    """Pick the agent of the least disutility.

    z = argmin_i y_hat_i,   DL(y_hat, y) = y_z
    """

    sense = "min"

    def solve(self, y_hat: Array, context: InstanceContext) -> int:
        return int(y_hat.argmin())

    def objective(self, z: int, y: Array, context: InstanceContext) -> float:
        return float(y[z])


def figure_losses_info(settings: LossesSettings) -> dict[str, Any]:
    """Returns every loss around the label (0, 1), as data.

    `surface[b][a]` is the loss of the prediction (axis[a], axis[b]), `on_line[i]` that of
    (line[i], 1 - line[i]): the line runs through the label, at 0, and the swapped prediction (1, 0)
    at 1. `descent` is the negative gradient at the swapped prediction, where training would go.
    """
    axis, line = np.linspace(*_RANGE, settings.n_grid), np.linspace(*_RANGE, _N_ON_LINE)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)
    on_line = np.stack([line, 1 - line], axis=-1)
    return {
        "settings": asdict(settings),
        "label": _LABEL.tolist(),
        "swapped": _SWAPPED.tolist(),
        "axis": rounded(axis),
        "line": rounded(line),
        "losses": [
            {
                "name": name,
                "kind": kind,
                "surface": rounded(loss(grid.reshape(-1, 2)).reshape(grid.shape[:2])),
                "on_line": rounded(loss(on_line)),
                "descent": rounded(_descent(loss)),
            }
            for name, kind, loss in _losses(settings)
        ],
    }


def _losses(settings: LossesSettings) -> Iterator[tuple[str, str, _Loss]]:
    """Yields name, kind and function."""
    problem = PickOne()
    yield "decision loss", "true", lambda y_hat: decision_losses(problem, y_hat, _LABEL)
    yield "2-stage", "handcrafted", lambda y_hat: mean_squared_error(y_hat, _LABEL[np.newaxis])
    # The paper's y_hat_A - y_hat_B, scaled to 0 at the label and 1 at the swapped prediction.
    yield "linear", "handcrafted", lambda y_hat: (y_hat[:, 0] - y_hat[:, 1] + 1) / 2
    yield "DFL", "handcrafted", _through_soft_choice(settings.epsilon)
    samples = evaluate(
        problem,
        _LABEL[np.newaxis],
        sampler=AllPerturbed(settings.scale),
        n_samples=settings.n_samples,
        seed=settings.seed,
        progress=False,
    )
    for name, method in METHODS.items():
        if isinstance(method, Learned):
            yield name, "learned", _learn(samples, method.family)


def _through_soft_choice(epsilon: float) -> _Loss:
    """Returns the decision loss of soft top-1, which takes utilities: here minus disutilities."""
    criterion = DecisionLoss(SoftTopK(k=1, epsilon=epsilon), mse_weight=0.0)
    utility = torch.from_numpy(-_LABEL)

    def loss(y_hat: Array) -> Array:
        losses: Array = criterion(torch.from_numpy(-y_hat), utility.expand(len(y_hat), 2)).numpy()
        return losses

    return loss


def _learn(samples: OracleSamples, family: Family) -> _Loss:
    phi = fit(samples, family, progress=False).rows().phi
    return lambda y_hat: np.asarray(family.value(phi, (y_hat - _LABEL)[np.newaxis])[0])


def _descent(loss: _Loss) -> Array:
    """Returns the negative gradient at the swapped prediction, by central differences."""
    steps = 1e-4 * np.eye(2)
    ahead, behind = loss(_SWAPPED + steps), loss(_SWAPPED - steps)
    return (behind - ahead) / 2e-4
