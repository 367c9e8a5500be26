"""Features as learners get them: arrays, and frames for those that take them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import as_numbers, is_frame, place_of
from lodl._typing import Array
from lodl.errors import InvalidInputError


def count_rows(x: Any) -> int:
    """Return the number of rows of an array or a frame."""
    return int(x.shape[0])


def same_features(one: Any, other: Any) -> bool:
    """Return whether two arrays or frames hold the same values."""
    if type(one) is not type(other) or one.shape != other.shape:
        return False
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    return bool(one.equals(other))


def check_features(x: Any, n: int | None = None, *, n_features: int | None = None) -> Any:
    """Return features as a frame, or as an array (n, p) or (n, items, p) of numbers or NaN.

    Args:
        x: The features.
        n: The number of instances there should be; any if None.
        n_features: The number of features there should be; any if None.
    """
    if not is_frame(x):
        x = as_numbers(x, "x")
    if len(x.shape) < 2 or 0 in x.shape:
        raise InvalidInputError(
            f"`x` must have shape (n, p), or (n, items, p) for a model per item, got {x.shape}."
        )
    if n is not None and count_rows(x) != n:
        raise InvalidInputError(f"`x` must have one row per instance ({n}), got {count_rows(x)}.")
    if n_features is not None and x.shape[-1] != n_features:
        raise InvalidInputError(
            f"`x` must have the {n_features} features that the model was trained with, got "
            f"{x.shape[-1]}."
        )
    return x


def check_numbers(x: Any, n: int | None = None, *, n_features: int | None = None) -> Array:
    """Return features as a finite array; what is not a number is named by its column."""
    features = check_features(x, n, n_features=n_features)
    numbers: Array = as_numbers(features, "x")
    if not np.isfinite(numbers).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        raise InvalidInputError(
            f"`X` must be finite for this estimator, got {numbers[where]} {place_of(x, where)}. "
            "Fill or drop missing values first."
        )
    return numbers


def as_pandas(x: Any) -> Any:
    """Return a frame of polars as one of pandas, anything else as it is."""
    return x.to_pandas() if is_frame(x) and hasattr(x, "to_pandas") else x


def categories_of(table: Any) -> dict[str, list[Any]]:
    """Return the categories of each column of a pandas frame that has some."""
    names = [name for name in getattr(table, "columns", ()) if table[name].dtype == "category"]
    return {name: table[name].cat.categories.tolist() for name in names}


def with_categories(x: Any, categories: dict[str, list[Any]]) -> Any:
    """Return an array, or a pandas frame with the categories that a model was trained with.

    Others are missing then: XGBoost takes some of them for a category that it knows, and stops at
    others.
    """
    table = as_pandas(x)
    if not categories:
        return table
    return table.assign(
        **{
            name: table[name].astype("category").cat.set_categories(known)
            for name, known in categories.items()
        }
    )


def as_rows(x: Any) -> Any:
    """Return features with one row per instance or, for a model per item, per item."""
    return x.reshape(-1, x.shape[-1]) if isinstance(x, np.ndarray) else x


def count_items(x: Any, y: Array) -> int | None:
    """Return the number of items that one model serves, None where features are joint."""
    if len(x.shape) < 3:
        return None
    if y[0].size % x.shape[1]:
        raise InvalidInputError(
            f"`X` has {x.shape[1]} items per instance, which must divide the {y[0].size} values of "
            "a label."
        )
    return int(x.shape[1])


def check_masks(masks: Any, n: int) -> npt.NDArray[np.bool_]:
    """Return masks of shape (n_models, n). Defaults to one model that trains on all instances."""
    if masks is None:
        return np.ones((1, n), dtype=np.bool_)
    checked = np.asarray(masks)
    if checked.dtype != np.bool_ or checked.ndim != 2 or checked.shape[1] != n or not len(checked):
        raise InvalidInputError(
            f"`masks` must be booleans of shape (n_models, {n}), got {checked.dtype} of shape "
            f"{checked.shape}."
        )
    if not checked.any(axis=1).all():
        raise InvalidInputError("`masks` must have an instance to train on in every row.")
    if len(np.unique(checked.all(axis=1))) > 1:
        raise InvalidInputError(
            "`masks` must leave out instances, which stop the model, in every row or in none."
        )
    return checked
