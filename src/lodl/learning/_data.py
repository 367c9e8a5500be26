"""What a user hands to `fit`: features, labels, contexts, and how to hold instances out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._frames import (
    Features,
    as_numbers,
    column_names,
    is_frame,
    join_rows,
    records,
    row_names,
)
from lodl._typing import Array, Context
from lodl._validation import check_context, check_labels
from lodl.errors import InvalidInputError
from lodl.learning._folds import Folds

Validation = int | float | tuple[Any, ...] | None


@dataclass(frozen=True, eq=False)
class Data:
    """Features, labels and contexts of instances.

    Attributes:
        x: Features: an array, or a frame where the learner takes frames.
        y: Labels, with an axis of length 1 where they came as one number for each instance.
        label_shape: The shape of a label as it came: () for one number.
        context: One entry per instance, or None.
        feature_names: The columns of a frame of features, else None.
        label_names: The columns of a frame of labels, else None.
        names: Names of the instances: the index of a frame, else their positions.
    """

    x: Features
    y: Array
    label_shape: tuple[int, ...]
    context: Context
    feature_names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, x: Any, y: Any, context: Any, *, keeps_frames: bool) -> "Data":
        """Check what a user handed over; a frame of features stays one if `keeps_frames`."""
        labels = labels_of(y)
        features = features_of(x, keeps_frames=keeps_frames)
        if len(features) != len(labels):
            raise InvalidInputError(
                f"`X` must have one row per instance ({len(labels)}, as `Y` has), got "
                f"{len(features)}."
            )
        _check_same_order(row_names(x), row_names(y))
        contexts = records(context)
        check_context(contexts, len(labels))
        names = row_names(x) or row_names(y) or tuple(f"instance {i}" for i in range(len(labels)))
        shape = () if _is_vector(y) else labels.shape[1:]
        return cls(features, labels, shape, contexts, column_names(x), column_names(y), names)

    def joined(self, other: "Data") -> "Data":
        """Return these instances, then others."""
        if (self.context is None) != (other.context is None):
            raise InvalidInputError("`context` must be given for all instances, or for none.")
        check_names(self.feature_names, other.feature_names, required=is_frame(self.x))
        context: Context = None
        if self.context is not None and other.context is not None:
            context = [*self.context, *other.context]
        return Data(
            join_rows(self.x, other.x),
            np.concatenate([self.y, other.y]),
            self.label_shape,
            context,
            self.feature_names,
            self.label_names,
            self.names + other.names,
        )

    def held_out(
        self,
        validation: Validation,
        groups: Sequence[Any] | npt.NDArray[Any] | None,
        *,
        shuffle: bool,
        seed: int,
        keeps_frames: bool,
    ) -> tuple["Data", Folds]:
        """Return all instances, and which of them judge.

        Args:
            validation: See `DecisionFocusedRegressor.fit`.
            groups: The group of each instance, or None.
            shuffle: Whether held-out instances are drawn at random.
            seed: Random seed of the draw.
            keeps_frames: Whether a frame of features stays one.
        """
        if not isinstance(validation, tuple):
            if len(self.y) < 2:
                raise InvalidInputError(
                    "`Y` must have at least 2 instances, so that one can be held out, got 1 sample."
                )
            _check_groups(groups, len(self.y))
            return self, Folds.of(
                len(self.y), validation, shuffle=shuffle, seed=seed, groups=groups
            )
        if groups is not None:
            raise InvalidInputError(
                "`groups` must be None where `validation` gives the instances that judge."
            )
        if len(validation) not in (2, 3):
            raise InvalidInputError(
                "`validation` must be `(X, Y)` or `(X, Y, context)`, got "
                f"{len(validation)} entries."
            )
        x, y, context = (*validation, None)[:3]
        more = Data.of(x, y, context, keeps_frames=keeps_frames)
        return self.joined(more), Folds.given(len(self.y), len(more.y))


def _check_same_order(x_names: Sequence[str] | None, y_names: Sequence[str] | None) -> None:
    """Check that rows of the same names are in the same order; None is rows without names."""
    if x_names is None or y_names is None or x_names == y_names:
        return
    if sorted(x_names) == sorted(y_names):
        at = next(
            i for i, (one, other) in enumerate(zip(x_names, y_names, strict=True)) if one != other
        )
        raise InvalidInputError(
            f"The rows of `X` and `Y` must be in the same order, got {x_names[at]} in `X` but "
            f"{y_names[at]} in `Y` at position {at}. Use `Y.loc[X.index]`."
        )


def labels_of(y: Any) -> Array:
    """Return labels as an array: of a frame a number for each column, of a vector (n, 1)."""
    if is_frame(y):
        return check_labels(as_numbers(y, "Y"), "Y")
    return check_labels(np.ma.asarray(y).reshape(-1, 1) if _is_vector(y) else y, "Y")


def _is_vector(y: Any) -> bool:
    """Return whether labels are one number for each instance."""
    if hasattr(y, "shape"):
        return len(y.shape) == 1
    try:
        return np.asarray(y).ndim == 1
    except ValueError:  # lists of different lengths
        return False


def features_of(x: Any, *, keeps_frames: bool) -> Features:
    """Return features as an array (n, p) or (n, items, p), or as the frame they are."""
    if is_frame(x) and keeps_frames:
        return x
    if hasattr(x, "tocsr"):
        raise InvalidInputError("`X` must be dense, got a sparse matrix: use `X.toarray()`.")
    features = as_numbers(x, "X")
    if features.ndim < 2 or 0 in features.shape:
        raise InvalidInputError(
            f"`X` must have shape (n, p), or (n, items, p), got {features.shape}."
        )
    return features


def check_names(
    expected: Sequence[str] | None, given: Sequence[str] | None, *, required: bool
) -> None:
    """Check that the columns of new features are those of `fit`.

    Args:
        expected: The columns of `fit`, None if it had an array.
        given: The columns there are now, None for an array.
        required: Whether an array without names is refused where `fit` had columns.
    """
    if expected is None or (given is None and not required):
        return
    if given is None:
        raise InvalidInputError(
            f"`X` must be a frame with the columns of `fit`: {', '.join(expected)}."
        )
    if list(expected) == list(given):
        return
    wrong = []
    if missing := [repr(name) for name in expected if name not in given]:
        wrong.append(f"missing are {', '.join(missing)}")
    if unknown := [repr(name) for name in given if name not in expected]:
        wrong.append(f"not known are {', '.join(unknown)}")
    if not wrong:
        wrong.append("they are in another order; use `X[list(model.feature_names_in_)]`")
    raise InvalidInputError(f"`X` must have the columns it had in `fit`: {'; '.join(wrong)}.")


def _check_groups(groups: Any, n: int) -> None:
    if groups is not None and len(groups) != n:
        raise InvalidInputError(
            f"`groups` must have one entry per instance ({n}), got {len(groups)}."
        )
