"""Corrections of predictions that need no training: shifts by a quantile of the residuals.

If shortage costs more than excess, a careful practitioner adds to every prediction the quantile of
its residuals at which decisions are cheapest. A learned loss knows these costs, so the shift is

    b = argmin_b sum_i L_i(y_hat_i + b)

over out-of-fold predictions y_hat, without a solver call, judged on residuals that did not set it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lodl._typing import Array, Index
from lodl.learning._folds import Folds
from lodl.learning._search import Contender
from lodl.losses import LearnedLoss
from lodl.report import Estimate

LEVELS = (  # of the quantiles of residuals that are tried
    *(0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4),
    *(0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995),
)
_FEWEST = 20  # out-of-fold predictions that a learned loss can shift
_ROUNDINGS = (0.6, 0.1)  # widths of kinks, in units of the family's width
_MAX_STEPS = 100  # L-BFGS steps per rounding


def shifted(contender: Contender, level: float, y: Array, folds: Folds) -> Contender:
    """Return a contender that adds a quantile of its residuals to predictions, without regrets."""
    residual, how = y - contender.y_hat, f"shifted to the {level:g} quantile of its residuals"
    return _shifted(contender, how, lambda rows: np.quantile(residual[rows], level, axis=0), folds)


def shifted_to_means(contender: Contender, y: Array, folds: Folds) -> Contender:
    """Return a contender whose mean residual is 0 for each item, without regrets."""
    residual, how = y - contender.y_hat, "shifted to each item's mean"
    return _shifted(contender, how, lambda rows: residual[rows].mean(axis=0), folds)


def shifted_by_loss(contender: Contender, loss: LearnedLoss, folds: Folds) -> Contender | None:
    """Return a contender with the shift that a learned loss prefers, without regrets.

    That is a quantile of the residuals at one level for all numbers of a label, or a shift for each
    number if its loss is clearly lower, on instances that did not set it; None if these are few.
    """
    rows, how = folds.validation, "shifted by the learned loss"
    if len(rows) < _FEWEST:
        return None
    own = _shifted(contender, how, lambda rows: shift_of(loss, contender.y_hat, rows), folds)
    levels = [shifted(contender, level, loss.y, folds) for level in LEVELS]
    losses = [loss.value(model.y_hat[rows], rows) for model in levels]
    best = int(np.argmin([values.mean() for values in losses]))
    gain = Estimate.of(losses[best] - loss.value(own.y_hat[rows], rows))
    return own if gain.mean > gain.standard_error else levels[best]


def shift_of(loss: LearnedLoss, y_hat: Array, rows: Index) -> Array:
    """Return what to add to predictions so that the mean loss of some rows is least."""
    from scipy.optimize import minimize  # slow to import

    phi = {name: values[rows] for name, values in loss.phi.items()}
    d = (y_hat[rows] - loss.y[rows]).reshape(len(rows), 1, -1)
    unit = float(loss.family.value(phi, d).mean()) or 1.0
    curvature = loss.family.curvature(phi, d)[:, 0].mean(axis=0)
    size = np.sqrt(unit / np.where(curvature > 0, curvature, curvature.max() or 1.0))
    shift = np.zeros(loss.dim)
    for rounding in _ROUNDINGS:
        family = loss.family.rounded(rounding)

        def objective(b: Array, family: Any = family) -> tuple[float, Array]:
            at = d + b * size
            gradient = family.gradient(phi, at)[:, 0].mean(axis=0) * size
            return float(family.value(phi, at).mean()) / unit, gradient / unit

        options: Any = {"maxiter": _MAX_STEPS, "ftol": 1e-12, "gtol": 1e-8}
        shift = minimize(objective, shift, jac=True, method="L-BFGS-B", options=options).x
    return np.asarray((shift * size).reshape(loss.label_shape))


def _shifted(
    contender: Contender, how: str, shift: Callable[[Index], Array], folds: Folds
) -> Contender:
    """Return a contender with shifted predictions. The residuals of other groups shift a group."""
    rows, groups, y_hat = folds.validation, folds.groups, contender.y_hat.copy()
    for group in np.unique(groups):
        if len(others := rows[groups != group]):
            y_hat[rows[groups == group]] += shift(others)
    return replace(contender, name=f"{contender.name}, {how}", y_hat=y_hat, shift=shift(rows))
