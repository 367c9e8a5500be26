"""A test of whether a linear model is right: does curvature lower its held-out squared error?

If a linear model describes the labels, no loss can improve on squared error by much, and what
validation decisions show is mostly chance.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.training import Predictor

Masks = npt.NDArray[np.bool_]

_MOST_PRODUCTS = 500  # quadratic terms; if there are more, only powers are added
_N_TRIED = 20  # pairs of instances that show whether a model is linear
_LINEAR = -1.0  # standard errors below which a linear model is right
_PENALTY = 1.0  # of the ridge on standardised terms


def is_right(model: Predictor, x: Any, y: Array, masks: Masks) -> bool:
    """Return whether a model is linear in its features, and curved terms would not improve it."""
    return is_linear(model, x) and z_of_curvature(x, y, masks) < _LINEAR


def is_linear(model: Predictor, x: Any) -> bool:
    """Return whether a model predicts for means of features the means of its predictions."""
    if not isinstance(x, np.ndarray) or not np.isfinite(x).all():
        return False
    first, second = x[:_N_TRIED], x[::-1][:_N_TRIED]
    between, *ends = (model.predict(rows) for rows in ((first + second) / 2, first, second))
    spread = max(float(np.abs(end - between).max()) for end in ends)
    return bool(np.abs(sum(ends) / 2 - between).max() <= 1e-4 * spread)


def z_of_curvature(x: Array, y: Array, masks: Masks) -> float:
    """Return by how many standard errors curved terms lower the held-out squared error.

    Args:
        x: Features, shape (n, p), or (n, items, p) for one model of all items.
        y: Labels, shape (n, *label_shape).
        masks: The rows that each fold's model is trained on, shape (folds, n). Instances that every
            fold trains on are not judged.

    Returns:
        z: Negative if a linear model is right. Zero if the data cannot show it.
    """
    n = len(x)
    n_items = x.shape[1] if x.ndim == 3 else 1
    rows, labels = x.reshape(n * n_items, -1), y.reshape(n * n_items, -1)
    scale = labels.std(axis=0)
    if not (scale > 0).any():
        return 0.0
    labels = labels[:, scale > 0] / scale[scale > 0]
    return max(_z(rows, terms, labels, masks, n_items) for terms in _curved(rows))


def _z(rows: Array, terms: Array, labels: Array, masks: Masks, n_items: int) -> float:
    """Return by how many standard errors some terms lower the held-out squared error."""
    saved = np.full(len(rows) // n_items, np.nan)
    for mask in masks:
        in_fold = np.repeat(mask, n_items)
        if in_fold.all() or not in_fold.any():
            continue
        linear, curved = (
            _squared_errors(features, labels, in_fold)
            for features in (rows, np.hstack([rows, terms]))
        )
        saved[~mask] = (linear - curved).reshape(-1, n_items).sum(axis=1)
    known = saved[np.isfinite(saved)]
    error = known.std(ddof=1) / np.sqrt(len(known)) if len(known) > 1 else 0.0
    return float(known.mean() / error) if error > 0 else 0.0


def _curved(rows: Array) -> tuple[Array, Array]:
    """Return squares of features with their products, if these are not too many, and cubes.

    Features are centred first: otherwise powers of a feature far from zero repeat the feature.
    """
    scale = rows.std(axis=0)
    rows = (rows - rows.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    first, second = np.triu_indices(rows.shape[1])
    if len(first) > _MOST_PRODUCTS:
        first = second = np.arange(rows.shape[1])
    return rows[:, first] * rows[:, second], rows**3


def _squared_errors(terms: Array, labels: Array, in_fold: Masks) -> Array:
    """Return each held-out row's squared error under a ridge regression on the other rows."""
    from sklearn.linear_model import Ridge  # slow to import

    mean, scale = terms[in_fold].mean(axis=0), terms[in_fold].std(axis=0)
    scaled = (terms - mean) / np.where(scale > 0, scale, 1.0)
    model = Ridge(_PENALTY).fit(scaled[in_fold], labels[in_fold])
    error = model.predict(scaled[~in_fold]).reshape(-1, labels.shape[1]) - labels[~in_fold]
    return np.asarray(np.square(error).sum(axis=1))
