"""Learned loss compared with true regret, at predictions and around them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl._arrays import rank_correlation
from lodl._typing import Array
from lodl.evaluation._probe import Probe
from lodl.losses import LearnedLoss

_N_AROUND = 4
_AROUND = 0.5  # noise around a prediction, in units of its error
_N_WORST = 5
CALLS_PER_INSTANCE = 5 + _N_AROUND
"""The label, the prediction, halfway, reversed, another instance's prediction, and those around."""


@dataclass(frozen=True)
class WorstInstance:
    """The learned loss and the true regret of one instance at its prediction."""

    instance: int
    loss: float
    regret: float


@dataclass(frozen=True)
class Fidelity:
    """How a learned loss compares with the true regret at predictions; NaN if not defined.

    Attributes:
        regret: Mean true regret of the predictions.
        loss: Mean learned loss of the predictions.
        error: Mean absolute difference between the two.
        share_bounded: Share of predictions whose learned loss is at least their true regret, as it
            should be for a family that bounds the regret.
        rank_correlation: Spearman's correlation of loss and regret across instances.
        rank_correlation_within: The same across points of one instance (its prediction, halfway to
            the label, and around the prediction), averaged over instances.
        reversed_regret: Mean regret of `2 y - y_hat`, the same errors with the opposite sign.
        foreign_regret: Mean regret of using the prediction of another instance, drawn at random:
            the cost of predictions without information. Not defined for a single instance.
        sees_direction: Whether the learned loss differs between errors and reversed errors.
        worst: The instances with the largest differences, largest first.
    """

    regret: float
    loss: float
    error: float
    share_bounded: float
    rank_correlation: float
    rank_correlation_within: float
    reversed_regret: float
    foreign_regret: float
    sees_direction: bool
    worst: tuple[WorstInstance, ...]

    @property
    def error_share(self) -> float:
        """The error as a share of the mean regret."""
        return self.error / self.regret if self.regret > 0 else np.nan

    @property
    def quality(self) -> float:
        """Decision quality: 1 for the best decisions, 0 for those from foreign predictions."""
        return 1 - self.regret / self.foreign_regret if self.foreign_regret > 0 else np.nan


def measure_fidelity(loss: LearnedLoss, y_hat: Array, *, probe: Probe, seed: int) -> Fidelity:
    """Compare a learned loss with the true regret at and around predictions.

    Args:
        loss: The learned loss.
        y_hat: Predictions of all instances.
        probe: The instances to look at, with `CALLS_PER_INSTANCE` oracle calls for each.
        seed: Random seed for the other instances and for the points around predictions.
    """
    rng = np.random.default_rng(seed)
    own = y_hat[probe.index]
    foreign = y_hat[_others(probe.index, len(y_hat), rng)]
    reversed_ = 2 * probe.y - own
    near = [(probe.y + own) / 2, *_around(own, probe.y, rng)]
    made = probe.project(np.stack([reversed_, *near]))  # the others are a model's own
    points = np.concatenate([own[np.newaxis], foreign[np.newaxis], made])
    regret, value = probe.regret(points), probe.loss(loss, points)
    of_own, of_foreign, of_reversed = regret[:3]
    at_reversed = probe.loss(loss, reversed_[np.newaxis])[0]
    within = [rank_correlation(v, r) for v, r in zip(value[_NEAR].T, regret[_NEAR].T, strict=True)]
    return Fidelity(
        regret=float(of_own.mean()),
        loss=float(value[0].mean()),
        error=float(np.abs(value[0] - of_own).mean()),
        share_bounded=float((value[0] >= of_own).mean()),
        rank_correlation=rank_correlation(value[0], of_own),
        rank_correlation_within=_mean(np.array(within)),
        reversed_regret=float(of_reversed.mean()),
        foreign_regret=float(of_foreign.mean()) if len(y_hat) > 1 else np.nan,
        sees_direction=not np.allclose(at_reversed, value[0], atol=0),
        worst=_worst(probe, value[0], of_own),
    )


_NEAR = [0, *range(3, 4 + _N_AROUND)]  # rows of the points: the prediction, halfway, around


def _others(index: npt.NDArray[np.intp], n: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Draw another instance for each, not its neighbour: in time order that is nearly the same."""
    return (index + rng.integers(1, max(n, 2), size=len(index))) % n


def _around(y_hat: Array, y: Array, rng: np.random.Generator) -> Array:
    """Return points around predictions, shape (_N_AROUND, n, *label_shape)."""
    size = np.sqrt(np.square(y_hat - y).mean(axis=tuple(range(1, y.ndim)), keepdims=True))
    noise = rng.standard_normal((_N_AROUND, *y.shape))
    return np.asarray(y_hat + _AROUND * size * noise)


def _worst(probe: Probe, value: Array, regret: Array) -> tuple[WorstInstance, ...]:
    order = np.argsort(-np.abs(value - regret), kind="stable")[:_N_WORST]
    return tuple(
        WorstInstance(int(probe.index[i]), float(value[i]), float(regret[i])) for i in order
    )


def _mean(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else np.nan
