"""The instances that select a model: those of `validation`, or folds of the training instances."""

from typing import Any

from lodl._frames import check_same_rows
from lodl.errors import InvalidInputError
from lodl.learning._data import Data
from lodl.learning._folds import Folds, Groups

Validation = int | float | tuple[Any, ...] | None


def split(
    data: Data, validation: Validation, groups: Groups, *, shuffle: bool, seed: int, rows: Any
) -> tuple[Data, Folds]:
    """Return all instances, and which of them are held out.

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
        if groups is not None:
            raise InvalidInputError(
                "`groups` must be None where `validation` gives the instances that judge."
            )
        everything = data.validated_by(validation)
        return everything, Folds.given(n, len(everything.y) - n)
    if n < 2:
        raise InvalidInputError(
            "`Y` must have at least 2 instances, so that one can be held out, got 1 sample."
        )
    if groups is not None:
        if len(groups) != n:
            raise InvalidInputError(
                f"`groups` must have one entry per instance ({n}), got {len(groups)}."
            )
        check_same_rows(X=rows, groups=groups)
    return data, Folds.of(n, validation, shuffle=shuffle, seed=seed, groups=groups)
