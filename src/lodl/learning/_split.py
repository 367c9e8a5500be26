"""The instances that select a model: those of `validation`, or folds of the training instances."""

import logging
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_same_rows, context_of, row_keys, take_rows
from lodl._digest import digest
from lodl.errors import InvalidInputError
from lodl.learning._data import Data
from lodl.learning._folds import Folds, Groups

Validation = int | float | tuple[Any, ...] | None
Index = npt.NDArray[np.intp]

_MISSING = ("None", "nan", "NaN", "NaT", "<NA>")  # how a value that is not there is printed

_logger = logging.getLogger(__name__)


def split(
    data: Data, validation: Validation, groups: Groups, *, shuffle: bool, seed: int, rows: Any
) -> tuple[Data, Folds]:
    """Return all instances, and which of them are held out.

    Exact copies of an instance are held out together, like a group.

    Args:
        data: The training instances.
        validation: See `DecisionFocusedRegressor.fit`.
        groups: The group of each instance, or None.
        shuffle: Whether held-out instances are drawn at random.
        seed: Random seed of the draw.
        rows: The features as they came, whose index names the rows.
    """
    n = len(data.y)
    if isinstance(validation, tuple):
        return _validated(data, validation, groups)
    if n < 2:
        raise InvalidInputError(
            "`Y` must have at least 2 instances, so that one can be held out, got 1 sample."
        )
    together = None
    if groups is not None:
        together = _group_numbers(groups, n)
        check_same_rows(X=rows, groups=groups)
    original = _originals(data)
    n_copies = int(np.sum(original != np.arange(n)))
    if n_copies:
        _logger.warning(
            "%d of %d instances are exact copies of others. Copies are held out together, so that "
            "no model is judged by instances that it was trained on.",
            n_copies,
            n,
        )
        if n - n_copies < 2:
            raise InvalidInputError(
                "`X` and `Y` must have at least 2 different instances, so that one can be held "
                f"out, got 1 and {n_copies} copies of it."
            )
        together = original if together is None else _connected(original, together)
    return data, Folds.of(n, validation, shuffle=shuffle, seed=seed, groups=together)


def _validated(data: Data, validation: tuple[Any, ...], groups: Groups) -> tuple[Data, Folds]:
    """Return the instances of both, of which the last are held out."""
    if groups is not None:
        raise InvalidInputError(
            "`groups` must be None where `validation` gives the instances that judge."
        )
    n = len(data.y)
    everything = data.validated_by(validation)
    n_validation = len(everything.y) - n
    n_known = int(np.sum(_originals(everything)[n:] < n))
    if n_known:
        _logger.warning(
            "%d of %d validation instances are also training instances: the validation regret is "
            "too low. Leave them out of one of the two.",
            n_known,
            n_validation,
        )
    return everything, Folds.given(n, n_validation)


def _originals(data: Data) -> Index:
    """Return, for each instance, the first one with the same features, label and context."""
    labels = row_keys(data.y)
    n_equal = Counter(labels)
    suspects = np.array([i for i, label in enumerate(labels) if n_equal[label] > 1], dtype=np.intp)
    original = np.arange(len(labels))
    seen: dict[Any, int] = {}
    for i, features in zip(suspects.tolist(), row_keys(take_rows(data.x, suspects)), strict=True):
        context = None if data.context is None else digest(context_of(data.context, i))
        original[i] = seen.setdefault((labels[i], features, context), i)
    return original


def _group_numbers(groups: Any, n: int) -> Index:
    """Return the number of each instance's group, in the order in which groups appear."""
    wanted = f"`groups` must be one value per instance ({n}), such as a name or a number, got"
    shape = getattr(groups, "shape", ())
    if len(shape) > 1:
        raise InvalidInputError(f"{wanted} shape {tuple(shape)}. Join several columns into one.")
    if isinstance(groups, str | bytes | dict) or not hasattr(groups, "__len__"):
        raise InvalidInputError(f"{wanted} {type(groups).__name__}.")
    values = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    if len(values) != n:
        raise InvalidInputError(
            f"`groups` must have one entry per instance ({n}), got {len(values)}."
        )
    numbers: dict[Any, int] = {}
    for i, value in enumerate(values):
        if isinstance(value, tuple | list | dict | set):
            raise InvalidInputError(
                f"{wanted} {type(value).__name__} for instance {i}. Join several values into one "
                "text."
            )
        if not isinstance(value, str) and str(value) in _MISSING:
            raise InvalidInputError(
                f"`groups` must not be missing, got {value} for instance {i}. Name a group for "
                "each instance."
            )
        numbers.setdefault(value, len(numbers))
    return np.array([numbers[value] for value in values])


def _connected(original: Index, group: Index) -> Index:
    """Return groups that are joined if a copy of an instance is in both."""
    from scipy.sparse import coo_array  # slow to import
    from scipy.sparse.csgraph import connected_components

    n = len(original)
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    ends = np.concatenate([original, first[number]])
    edges = (np.ones(2 * n), (np.tile(np.arange(n), 2), ends))
    return np.asarray(connected_components(coo_array(edges, shape=(n, n)), directed=False)[1])
