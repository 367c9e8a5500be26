r"""Corrections of predictions: a shift that a learned loss asks for, from out-of-fold predictions.

A practitioner moves predictions by a quantile of their residuals, whose level the costs of shortage
and excess decide. A learned loss has these costs, coordinate by coordinate, so the shift is

    b = argmin_b sum_i L_i(y_hat_i + b)

over out-of-fold predictions y_hat: for `DirectedWeightedMAE` a quantile of their residuals. It
takes no training and no solver call. It also mends models that were trained on the loss itself,
whose constant is a quantile of residuals that are smaller than those of unseen instances.

A corrected model is validated by predictions that its correction has not seen: those of a fold are
shifted by what the other folds ask for.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from lodl._typing import Array
from lodl.learning._folds import Folds, Index
from lodl.learning._search import Contender
from lodl.losses import LearnedLoss

_ROUNDINGS = (6.0, 1.0)  # widths of kinks, in units of the family's width
_MAX_STEPS = 100  # of L-BFGS, per rounding
_FEWEST = 20  # out-of-fold predictions for a shift
_N_BLOCKS = 5  # parts of the validation instances, if there is only one fold


def can_correct(loss: LearnedLoss) -> bool:
    """Return whether a loss can say how to shift predictions: a convex one, fitted to regrets."""
    return loss.family.is_convex and not loss.family.uses_slopes


def best_shift(loss: LearnedLoss, y_hat: Array, rows: Index) -> Array:
    """Return what to add to predictions so that their mean loss is least, in the label's shape.

    Args:
        loss: A convex loss of all instances.
        y_hat: Predictions, shape (n, *label_shape).
        rows: The instances whose losses count.
    """
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


def shifted(contender: Contender, loss: LearnedLoss, folds: Folds) -> Contender | None:
    """Return a contender with shifted predictions and without its regrets.

    Returns None if there are too few validation instances to learn a shift from.

    Args:
        contender: The contender, with out-of-fold predictions.
        loss: The loss that says how far to shift.
        folds: Folds of the instances. A fold's predictions are shifted by what the others ask for.
    """
    validation = folds.validation
    parts = [np.flatnonzero(part) for part in folds.parts]
    if len(parts) == 1:
        parts = np.array_split(validation, _N_BLOCKS)
    others = [np.setdiff1d(validation, part) for part in parts]
    if min(map(len, others)) < _FEWEST:
        return None
    y_hat, shift = contender.y_hat, best_shift(loss, contender.y_hat, validation)
    moved, n_models = np.zeros_like(y_hat), np.zeros(len(y_hat))
    for part, rest in zip(parts, others, strict=True):
        moved[part] += best_shift(loss, y_hat, rest)
        n_models[part] += 1
    n_models = n_models.reshape(-1, *[1] * (y_hat.ndim - 1))
    moves = np.where(n_models > 0, moved / np.maximum(n_models, 1), shift)
    name = f"{contender.name}, shifted"
    return replace(contender, name=name, y_hat=y_hat + moves, shift=contender.shift + shift)
