"""Features, labels and contexts that a user hands to `fit`, checked and matched by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lodl._arrays import (
    Features,
    as_numbers,
    check_context,
    check_labels,
    check_same_rows,
    column_names,
    in_columns,
    is_frame,
    join_rows,
    printable,
    row_names,
)
from lodl._typing import Array, Context
from lodl.errors import InvalidInputError

FIT = "it had in `fit`"
"""Whose columns new frames must have."""

_SMALLEST, _LARGEST = 1e-15, 1e15  # the largest label: single precision ends at 1e-38 and 3e38


@dataclass(frozen=True, eq=False)
class Data:
    """Features, labels and contexts of instances.

    Attributes:
        x: Features: an array, or a frame if the learner takes frames.
        y: Labels, with an axis of length 1 if they came as one number per instance.
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
    def of(
        cls,
        x: Any,
        y: Any,
        context: Any,
        *,
        keeps_frames: bool,
        called: tuple[str, str, str] = ("X", "Y", "context"),
    ) -> "Data":
        """Check the arguments of a user.

        Args:
            x: Features.
            y: Labels.
            context: Contexts, or None.
            keeps_frames: Whether a frame of features stays a frame.
            called: The names of these three in messages.
        """
        labels = _in_range(labels_of(y, called[1]), called[1])
        features = features_of(x, keeps_frames=keeps_frames, name=called[0])
        if len(features) != len(labels):
            raise InvalidInputError(
                f"`{called[0]}` must have one row per instance ({len(labels)}, as `{called[1]}` "
                f"has), got {len(features)}.{_items_advice(features, len(labels), called[0])}"
            )
        contexts = check_context(context, len(labels))
        check_same_rows(**dict(zip(called, (x, y, context), strict=True)))
        names = row_names(x) or row_names(y) or tuple(f"instance {i}" for i in range(len(labels)))
        shape = () if is_vector(y) else labels.shape[1:]
        return cls(
            features,
            labels,
            shape,
            contexts,
            column_names(x, called[0]),
            column_names(y, called[1]),
            names,
        )

    def validated_by(self, validation: tuple[Any, ...]) -> "Data":
        """Return these instances, followed by those of `validation=(X, Y)` or `(X, Y, context)`."""
        if len(validation) not in (2, 3):
            raise InvalidInputError(
                "`validation` must be `(X, Y)` or `(X, Y, context)`, got "
                f"{len(validation)} entries."
            )
        called = ("validation[0]", "validation[1]", "validation[2]")
        x, y, context = (*validation, None)[:3]
        keeps_frames = is_frame(self.x)
        x = check_columns(x, self.feature_names, called[0], required=keeps_frames)
        y = in_columns(y, self.label_names, called[1], FIT)
        more = Data.of(x, y, context, keeps_frames=keeps_frames, called=called)
        if (self.context is None) != (more.context is None):
            raise InvalidInputError("`context` must be given for all instances, or for none.")
        for name, ours, theirs in ((called[0], self.x, more.x), (called[1], self.y, more.y)):
            if ours.shape[1:] != theirs.shape[1:]:
                raise InvalidInputError(
                    f"`{name}` must have the shape (n, {', '.join(map(str, ours.shape[1:]))}), as "
                    f"in `fit`, got {theirs.shape}."
                )
        context = None
        if self.context is not None and more.context is not None:
            context = [*self.context, *more.context]
        return Data(
            join_rows(self.x, more.x),
            np.concatenate([self.y, more.y]),
            self.label_shape,
            context,
            self.feature_names,
            self.label_names,
            self.names + more.names,
        )


def labels_of(y: Any, name: str = "Y") -> Array:
    """Return labels as an array: of a frame a number for each column, of a vector (n, 1)."""
    if is_vector(y):
        y = y.to_frame() if hasattr(y, "to_frame") else np.ma.asarray(y).reshape(-1, 1)
    return check_labels(y, name)


def _in_range(labels: Array, name: str) -> Array:
    """Return labels if their squares are numbers in single precision, in which models train."""
    largest = float(np.abs(labels).max())
    if largest and not _SMALLEST <= largest <= _LARGEST:
        raise InvalidInputError(
            f"`{name}` must have its largest number between {_SMALLEST:g} and {_LARGEST:g}, got "
            f"{largest:.3g}. Choose another unit for the labels."
        )
    return labels


def is_vector(y: Any) -> bool:
    """Return whether labels are one number for each instance."""
    if hasattr(y, "shape"):
        return len(y.shape) == 1
    try:
        return np.asarray(y).ndim == 1
    except ValueError:  # lists of different lengths
        return False


def features_of(x: Any, *, keeps_frames: bool, name: str = "X") -> Features:
    """Return features as an array (n, p) or (n, items, p), or as the frame they are."""
    if is_frame(x) and keeps_frames:
        column_names(x, name)  # distinct
        return x
    if hasattr(x, "tocsr"):
        raise InvalidInputError(f"`{name}` must be dense, got a sparse matrix: use `X.toarray()`.")
    features = as_numbers(x, name)
    if features.ndim < 2 or 0 in features.shape:
        raise InvalidInputError(
            f"`{name}` must have shape (n, p), or (n, items, p), got {features.shape}."
        )
    return features


def check_columns(
    x: Any, expected: Sequence[str] | None, name: str = "X", *, required: bool
) -> Any:
    """Return features with the columns of `fit`, in their order.

    Args:
        x: An array or a frame.
        expected: The columns of `fit`, or None if it had an array.
        name: The name of the argument.
        required: Whether an array is refused if `fit` had a frame.
    """
    if expected is not None and required and not is_frame(x):
        raise InvalidInputError(
            f"`{name}` must be a frame with the columns of `fit`: {printable(', '.join(expected))}."
        )
    return in_columns(x, expected, name, FIT)


def _items_advice(features: Features, n: int, name: str) -> str:
    """Return what to do about features with a row for each item of an instance."""
    n_items, rest = divmod(len(features), n)
    if rest or n_items < 2:
        return ""
    return (
        f" If there are {n_items} rows for each instance, one for each item, pass an array of "
        f"shape (n, items, p): `{name}.to_numpy().reshape({n}, {n_items}, -1)`."
    )
