"""Corrections of predictions that need no training: shifts by a quantile of the residuals.

What a careful practitioner does if shortage costs more than excess: add to every prediction the
quantile of its residuals at which decisions are cheapest. One level serves all numbers of a label.
A shift is judged on instances whose residuals it was not computed from.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.learning._folds import Folds
from lodl.learning._search import Contender

LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
"""Quantiles of the residuals that are tried."""

_FIRST = (0.2, 0.8)  # levels that show the direction
_SMALL = (0.4, 0.6)  # levels to try if neither of these helps
_N_JUDGED = 150  # instances that choose the level
_N_GROUPS = 5  # groups of a single validation part, which judge each other's shifts
_MOST_LEVELS = 8  # levels that are tried: two or four, then steps in one direction

Regrets = Callable[[Array, npt.NDArray[np.intp]], Array]
"""Returns the regrets of predictions (m, *label_shape) for the instances at m positions."""


def n_corrections(n_instances: int) -> int:
    """Return the most solver calls per instance that the corrections of two models take."""
    return 2 + math.ceil(2 * _MOST_LEVELS * min(_N_JUDGED, n_instances) / n_instances)


def shifted(contender: Contender, level: float, y: Array, folds: Folds) -> Contender:
    """Return a contender that adds a quantile of its residuals to predictions, without regrets.

    Args:
        contender: A contender without a shift.
        level: Level of the quantile.
        y: Labels, shape (n, *label_shape).
        folds: Validation instances of different folds judge each other's shifts.
    """
    rows, residual = folds.validation, y - contender.y_hat
    groups = _groups(folds)
    y_hat = contender.y_hat.copy()
    for group in np.unique(groups[rows]):
        others = rows[groups[rows] != group]
        here = rows[groups[rows] == group]
        if len(others):
            y_hat[here] += np.quantile(residual[others], level, axis=0)
    return replace(
        contender,
        name=f"{contender.name}, shifted to the {level:g} quantile of its residuals",
        y_hat=y_hat,
        shift=np.quantile(residual[rows], level, axis=0),
    )


def best_shift(
    contender: Contender, y: Array, folds: Folds, regrets: Regrets, *, seed: int = 0
) -> Contender | None:
    """Return the contender with the shift that decides best on some validation instances.

    Levels are tried outwards from the middle, in the direction in which decisions get better.

    Args:
        contender: A scored contender without a shift.
        y: Labels, shape (n, *label_shape).
        folds: The folds of the contender.
        regrets: Calls the solver.
        seed: Random seed of the instances that judge.

    Returns:
        The shifted contender, not scored on all instances yet; None if no shift helps.
    """
    rows = folds.validation
    if len(rows) > _N_JUDGED:
        rows = np.sort(np.random.default_rng(seed).choice(rows, _N_JUDGED, replace=False))
    unshifted = _mean(contender.regret[rows])
    tried: dict[float, Contender] = {}
    means: dict[float, float] = {}

    def mean_of(level: float) -> float:
        if level not in means:
            tried[level] = shifted(contender, level, y, folds)
            means[level] = _mean(regrets(tried[level].y_hat[rows], rows))
        return means[level]

    for pair in (_FIRST, _SMALL):
        best = min(pair, key=mean_of)
        if means[best] < unshifted:
            break
    else:
        return None
    for step in (1, -1):
        place = LEVELS.index(best) + step
        while 0 <= place < len(LEVELS) and len(tried) < _MOST_LEVELS:
            if mean_of(LEVELS[place]) >= means[best]:
                break
            best, place = LEVELS[place], place + step
    return tried[best]


def _groups(folds: Folds) -> npt.NDArray[np.intp]:
    """Return the group of each instance: its fold, or a block of the only validation part."""
    if len(folds.parts) > 1:
        return np.asarray(folds.parts.argmax(axis=0))
    groups = np.zeros(folds.parts.shape[1], dtype=np.intp)
    for number, block in enumerate(np.array_split(folds.validation, _N_GROUPS)):
        groups[block] = number
    return groups


def _mean(regret: Array) -> float:
    """Return the mean of regrets, infinite if most of the calls failed."""
    known = regret[np.isfinite(regret)]
    return float(known.mean()) if 2 * len(known) > len(regret) else math.inf
