"""Features, labels and contexts of new instances, matched with those of `fit`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lodl._arrays import Features, check_context, check_same_rows, in_columns
from lodl._typing import Array, Context
from lodl.errors import InvalidInputError
from lodl.learning._data import FIT, check_columns, features_of, labels_of


@dataclass(frozen=True)
class Expected:
    """The columns, shapes and contexts that new instances must have: those of `fit`.

    Attributes:
        feature_names: Columns of the features, or None if they had no names.
        n_features: Number of features.
        keeps_frames: Whether models are given frames as they come.
        label_names: Columns of the labels, or None.
        label_shape: Shape of a label as the problem gets it.
        has_context: Whether there was a context.
    """

    feature_names: Sequence[str] | None
    n_features: int
    keeps_frames: bool
    label_names: Sequence[str] | None
    label_shape: tuple[int, ...]
    has_context: bool

    def features(self, x: Any) -> Features:
        """Return features with the columns of `fit`."""
        x = check_columns(x, self.feature_names, required=self.keeps_frames)
        features = features_of(x, keeps_frames=self.keeps_frames)
        if features.shape[-1] != self.n_features:
            raise InvalidInputError(
                f"`X` must have the {self.n_features} features of `fit`, got {features.shape[-1]}."
            )
        return features

    def labels(self, x: Any, y: Any) -> Array:
        """Return labels with the columns of `fit`, one row for each row of the features."""
        labels = labels_of(in_columns(y, self.label_names, "Y", FIT))
        expected = (_count(x), *self.label_shape)
        if labels.shape != expected:
            raise InvalidInputError(
                f"`Y` must have the shape {expected}, one row for each row of `X` with the label "
                f"shape of `fit`, got {labels.shape}."
            )
        check_same_rows(X=x, Y=y)
        return labels

    def contexts(self, x: Any, context: Any, *, advice: str = "") -> Context:
        """Return a context for each row of the features, or None if `fit` had none.

        Args:
            x: The features.
            context: The contexts, or None.
            advice: What to do if they are missing.
        """
        if context is None and self.has_context:
            raise InvalidInputError(
                f"`context` must be given: the model was fitted with one, got None.{advice}"
            )
        if context is not None and not self.has_context:
            raise InvalidInputError(
                "`context` must be None: the model was fitted without one, got a "
                f"{type(context).__name__}."
            )
        contexts = check_context(context, _count(x))
        check_same_rows(X=x, context=context)
        return contexts


def _count(x: Any) -> int:
    """Return the number of rows."""
    return int(x.shape[0]) if hasattr(x, "shape") else len(x)
