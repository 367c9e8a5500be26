"""Features and contexts of instances that come after `fit`, checked against those of `fit`."""

from collections.abc import Sequence
from typing import Any

from lodl._frames import Features, column_names, records
from lodl._typing import Context
from lodl._validation import check_context
from lodl.errors import InvalidInputError
from lodl.learning._data import check_names, features_of


def new_features(
    x: Any, names: Sequence[str] | None, n_features: int, *, keeps_frames: bool
) -> Features:
    """Return features with the columns of `fit`.

    Args:
        x: The features.
        names: The columns of `fit`, None if it had an array.
        n_features: Their number.
        keeps_frames: Whether a frame stays one.
    """
    check_names(names, column_names(x), required=keeps_frames)
    features = features_of(x, keeps_frames=keeps_frames)
    if features.shape[-1] != n_features:
        raise InvalidInputError(
            f"`X` must have the {n_features} features of `fit`, got {features.shape[-1]}."
        )
    return features


def new_context(context: Any, n: int, method: str, *, had_context: bool) -> Context:
    """Return one context per instance.

    Args:
        context: The contexts, or None.
        n: Number of instances.
        method: The method that they were given to.
        had_context: Whether `fit` had some, so that None is an error.
    """
    if context is None and had_context:
        message = "`context` must be given: the model was fitted with one, got None."
        if method == "score":  # which scikit-learn calls, too
            message += (
                " scikit-learn's searches and `cross_val_score` pass it on after "
                "`sklearn.set_config(enable_metadata_routing=True)`."
            )
        raise InvalidInputError(message)
    contexts = records(context)
    check_context(contexts, n)
    return contexts
