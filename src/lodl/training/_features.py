"""Features, labels and masks as learners get them: arrays, frames, items and scales."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lodl._arrays import as_numbers, is_frame, place_of
from lodl._typing import Array, Index, Masks
from lodl.errors import InvalidInputError

_ROUNDING = 1e-12  # share of the centre: the deviation of values that are all equal


def check_masks(masks: Any, n: int) -> Masks:
    """Return masks of shape (n_models, n). Defaults to one model that trains on all instances."""
    if masks is None:
        return np.ones((1, n), dtype=np.bool_)
    checked = np.asarray(masks)
    if checked.dtype != np.bool_ or checked.ndim != 2 or checked.shape[1] != n or not len(checked):
        got = f"{checked.dtype} of shape {checked.shape}"
        raise InvalidInputError(f"`masks` must be booleans of shape (n_models, {n}), got {got}.")
    if not checked.any(axis=1).all():
        raise InvalidInputError("`masks` must have an instance to train on in every row.")
    if len(np.unique(checked.all(axis=1))) > 1:
        raise InvalidInputError(
            "`masks` must leave out instances, which stop the model, in every row or in none."
        )
    return checked


def inner_folds(n: int, n_folds: int, seed: int) -> Iterator[tuple[Index, Index]]:
    """Yield, for each fold of a random partition, the instances outside and inside the fold."""
    order = np.random.default_rng(seed).permutation(n)
    for start in range(min(n_folds, n)):
        part = np.sort(order[start::n_folds])
        yield np.setdiff1d(np.arange(n), part), part


def check_features(x: Any, n: int | None = None, *, n_features: int | None = None) -> Any:
    """Return features as a frame, or as an array (n, p) or (n, items, p) of numbers or NaN."""
    if not is_frame(x):
        x = as_numbers(x, "x")
    if len(x.shape) < 2 or 0 in x.shape:
        wanted = "shape (n, p), or (n, items, p) for a model per item"
        raise InvalidInputError(f"`x` must have {wanted}, got {x.shape}.")
    if n is not None and len(x) != n:
        raise InvalidInputError(f"`x` must have one row per instance ({n}), got {len(x)}.")
    if n_features is not None and x.shape[-1] != n_features:
        wanted = f"the {n_features} features that the model was trained with"
        raise InvalidInputError(f"`x` must have {wanted}, got {x.shape[-1]}.")
    return x


def check_numbers(x: Any, n: int | None = None, *, n_features: int | None = None) -> Array:
    """Return features as a finite array. Errors name the column of anything else."""
    numbers: Array = as_numbers(check_features(x, n, n_features=n_features), "x")
    if not np.isfinite(numbers).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        got = f"{numbers[where]} {place_of(x, where)}. Fill or drop missing values first"
        raise InvalidInputError(f"`X` must be finite for this estimator, got {got}.")
    return numbers


def count_items(x: Any, y: Array) -> int | None:
    """Return the number of items that one model predicts, or None if features are joint."""
    if len(x.shape) < 3:
        return None
    if y[0].size % x.shape[1]:
        raise InvalidInputError(
            f"`X` has {x.shape[1]} items, which must divide the {y[0].size} values of a label."
        )
    return int(x.shape[1])


def as_rows(x: Any) -> Any:
    """Return features with one row per instance or, for a model per item, per item."""
    return x.reshape(-1, x.shape[-1]) if isinstance(x, np.ndarray) else x


def as_pandas(x: Any) -> Any:
    """Return a polars frame as a pandas frame, anything else unchanged."""
    return x.to_pandas() if is_frame(x) and hasattr(x, "to_pandas") else x


def categories_of(table: Any) -> dict[str, list[Any]]:
    """Return the categories of each categorical column of a pandas frame."""
    names = [name for name in getattr(table, "columns", ()) if table[name].dtype == "category"]
    return {name: table[name].cat.categories.tolist() for name in names}


def with_categories(x: Any, categories: dict[str, list[Any]]) -> Any:
    """Return an array, or a pandas frame with a model's categories, in which others are missing."""
    table = as_pandas(x)
    columns = {
        name: table[name].astype("category").cat.set_categories(known)
        for name, known in categories.items()
    }
    return table.assign(**columns) if columns else table


@dataclass(frozen=True, eq=False)
class Scaling:
    """A centre and a spread for the last axes of an array: `centre + spread * scaled`."""

    centre: Array
    spread: Array

    @classmethod
    def of_features(cls, x: Array) -> "Scaling":
        """Return the mean and deviation of each feature, over instances and items."""
        axes = tuple(range(x.ndim - 1))
        centre, spread = x.mean(axis=axes), x.std(axis=axes)
        return cls(centre, np.where(spread > _ROUNDING * np.abs(centre), spread, 1.0))

    @classmethod
    def of_labels(cls, y: Array, n_items: int | None) -> "Scaling":
        """Return the mean and deviation of each value of a label. Items share them."""
        item = cls.of_features(y.reshape(len(y) * (n_items or 1), -1))
        parts = (item.centre, item.spread)
        return cls(*(np.tile(part, n_items or 1).reshape(y.shape[1:]) for part in parts))

    def scaled(self, values: Array) -> Array:
        """Return values in units of the spread around the centre."""
        return (values - self.centre) / self.spread
