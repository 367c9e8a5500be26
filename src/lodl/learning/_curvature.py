"""A test of whether a linear model is right: does curvature lower its held-out squared error?

If a linear model describes the labels, no loss can improve on squared error by much, and what
validation decisions show is mostly chance.
"""

import numpy as np
import numpy.typing as npt

from lodl._typing import Array

_MOST_PRODUCTS = 2_000  # quadratic terms; if there are more, only powers are added
_PENALTY = 1.0  # of the ridge on standardised terms


def z_of_curvature(x: Array, y: Array, masks: npt.NDArray[np.bool_]) -> float:
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
    saved = np.full(n, np.nan)
    for mask in masks:
        in_fold = np.repeat(mask, n_items)
        if in_fold.all() or not in_fold.any():
            continue
        linear, curved = (
            _squared_errors(terms, labels, in_fold) for terms in (rows, _with_curvature(rows))
        )
        saved[~mask] = (linear - curved).reshape(-1, n_items).sum(axis=1)
    known = saved[np.isfinite(saved)]
    error = known.std(ddof=1) / np.sqrt(len(known)) if len(known) > 1 else 0.0
    return float(known.mean() / error) if error > 0 else 0.0


def _with_curvature(rows: Array) -> Array:
    """Return features with squares, cubes and, if these are not too many, products.

    Features are centred first: otherwise powers of a feature far from zero repeat the feature.
    """
    scale = rows.std(axis=0)
    rows = (rows - rows.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    n_features = rows.shape[1]
    if n_features * (n_features + 1) // 2 > _MOST_PRODUCTS:
        return np.hstack([rows, rows**2, rows**3])
    first, second = np.triu_indices(n_features)
    return np.hstack([rows, rows[:, first] * rows[:, second], rows**3])


def _squared_errors(terms: Array, labels: Array, in_fold: npt.NDArray[np.bool_]) -> Array:
    """Return each held-out row's squared error under a ridge regression on the other rows."""
    from sklearn.linear_model import Ridge  # slow to import

    mean, scale = terms[in_fold].mean(axis=0), terms[in_fold].std(axis=0)
    scaled = (terms - mean) / np.where(scale > 0, scale, 1.0)
    model = Ridge(_PENALTY).fit(scaled[in_fold], labels[in_fold])
    error = model.predict(scaled[~in_fold]).reshape(-1, labels.shape[1]) - labels[~in_fold]
    return np.asarray(np.square(error).sum(axis=1))
