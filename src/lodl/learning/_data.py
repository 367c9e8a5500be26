"""Features, labels and contexts of `fit` and of new instances, checked and matched by name."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_array

from lodl import _arrays as arrays
from lodl._typing import Array, Context
from lodl.errors import InvalidInputError
from lodl.report import FitResult

_CALLED = ("X", "Y", "context")  # the arguments of `fit`
_OF_FIT = "it had in `fit`"  # whose columns new frames must have
_SMALLEST, _LARGEST = 1e-15, 1e15  # of the largest label: single precision ends at 1e-38 and 3e38
_ROUTING = (  # scikit-learn may have lost a context on the way
    " scikit-learn's searches and `cross_val_score` pass it on after "
    "`sklearn.set_config(enable_metadata_routing=True)`."
)


@dataclass(frozen=True, eq=False)
class Data:
    """Features, labels and contexts of instances."""

    x: arrays.Features  # an array, or a frame if the learner takes frames
    y: Array  # shape (n, 1) if there is one number per instance
    label_shape: tuple[int, ...]  # as given: () for one number
    context: Context
    feature_names: tuple[str, ...] | None  # the columns of a frame
    label_names: tuple[str, ...] | None
    names: tuple[str, ...]  # of the instances: the index of a frame, else their positions
    time_order: int  # 1 if an index or a column of dates increases, -1 if it decreases, else 0

    @property
    def has_items(self) -> bool:
        """Whether one model predicts all items of a label."""
        return isinstance(self.x, np.ndarray) and self.x.ndim == 3

    @classmethod
    def of(
        cls, x: Any, y: Any, context: Any, *, takes_frames: bool, called: Sequence[str] = _CALLED
    ) -> "Data":
        """Check the arguments of a user, which messages call by the names `called`."""
        if arrays.is_frame(x):  # before its columns: rows of items may have texts
            _check_rows(x, y, len(y), called)
        features = _features_of(x, takes_frames=takes_frames, name=called[0])
        labels = _in_range(arrays.labels_of(y, called[1]), called[1])
        _check_rows(features, y, len(labels), called)
        contexts = arrays.check_context(context, len(labels))
        arrays.check_same_rows(**dict(zip(called, (x, y, context), strict=True)))
        named = arrays.row_names(x) or arrays.row_names(y)
        names = named or tuple(f"instance {i}" for i in range(len(labels)))
        label_shape = () if arrays.is_vector(y) else labels.shape[1:]
        columns = arrays.column_names(x, called[0]), arrays.column_names(y, called[1])
        time_order = next(filter(None, map(_time_order, (x, y, context))), 0)
        return cls(features, labels, label_shape, contexts, *columns, names, time_order)

    def followed_by(self, validation: tuple[Any, ...]) -> "Data":
        """Return these instances, then those of `validation=(X, Y)` or `(X, Y, context)`."""
        if len(validation) not in (2, 3):
            expected, n = "`validation` must be `(X, Y)` or `(X, Y, context)`", len(validation)
            raise InvalidInputError(f"{expected}, got {n} entries.")
        called = ("validation[0]", "validation[1]", "validation[2]")
        x, y, context = (*validation, None)[:3]
        takes_frames = arrays.is_frame(self.x)
        x = _check_columns(x, self.feature_names, called[0], required=takes_frames)
        y = arrays.in_columns(y, self.label_names, called[1], _OF_FIT)
        more = Data.of(x, y, context, takes_frames=takes_frames, called=called)
        if (self.context is None) != (more.context is None):
            raise InvalidInputError("`context` must be given for all instances, or for none.")
        contexts = () if more.context is None else more.context  # an array has no truth value
        for name, ours, theirs in ((called[0], self.x, more.x), (called[1], self.y, more.y)):
            if ours.shape[1:] != theirs.shape[1:]:
                wanted = f"the shape (n, {', '.join(map(str, ours.shape[1:]))}), as in `fit`"
                raise InvalidInputError(f"`{name}` must have {wanted}, got {theirs.shape}.")
        return replace(
            self,
            x=arrays.join_rows(self.x, more.x),
            y=np.concatenate([self.y, more.y]),
            context=None if self.context is None else [*self.context, *contexts],
            names=self.names + more.names,
        )


def new_features(result: FitResult, x: Any) -> arrays.Features:
    """Return the features of new instances, with the columns of `fit` in their order."""
    x = _check_columns(x, result.feature_names, required=result.takes_frames)
    features = _features_of(x, takes_frames=result.takes_frames)
    if features.shape[-1] != result.n_features:
        raise InvalidInputError(
            f"X has {features.shape[-1]} features, but DecisionFocusedRegressor is expecting "
            f"{result.n_features} features as input."
        )
    return features


def new_instances(
    result: FitResult, x: Any, y: Any, context: Any, *, in_score: bool = False
) -> tuple[Array, Context]:
    """Return labels and contexts of new instances, one for each row of the features."""
    labels = arrays.labels_of(arrays.in_columns(y, result.label_names, "Y", _OF_FIT))
    expected = (np.shape(x)[0], *(result.label_shape or (1,)))
    if labels.shape != expected:
        wanted = f"the shape {expected}, one row for each row of `X` with the label shape of `fit`"
        raise InvalidInputError(f"`Y` must have {wanted}, got {labels.shape}.")
    arrays.check_same_rows(X=x, Y=y)
    return labels, new_contexts(result, x, context, in_score=in_score)


def new_contexts(result: FitResult, x: Any, context: Any, *, in_score: bool = False) -> Context:
    """Return a context for each row of the features, or None if `fit` had none."""
    if context is None and result.has_context:
        expected = "`context` must be given: the model was fitted with one, got None."
        raise InvalidInputError(expected + (_ROUTING if in_score else ""))
    if context is not None and not result.has_context:
        expected, got = "must be None: the model was fitted without one", type(context).__name__
        raise InvalidInputError(f"`context` {expected}, got a {got}.")
    contexts = arrays.check_context(context, np.shape(x)[0])
    arrays.check_same_rows(X=x, context=context)
    return contexts


def _features_of(x: Any, *, takes_frames: bool, name: str = "X") -> arrays.Features:
    """Return features as an array (n, p) or (n, items, p), or as the frame they are."""
    if isinstance(x, np.ndarray) and x.dtype.kind in "mM":
        return arrays.as_numbers(x, name)  # raises: dates, which scikit-learn would convert
    if not arrays.is_frame(x):
        how: Any = {"allow_nd": True, "ensure_all_finite": False, "input_name": name}
        try:
            return check_array(x, dtype=np.float64, **how)
        except ValueError as error:
            raise InvalidInputError(f"`{name}` must be an array of numbers: {error}") from error
    arrays.column_names(x, name)  # distinct
    return x if takes_frames else arrays.as_numbers(x, name)


def _time_order(table: Any) -> int:
    """Return 1 if the index or a column of dates increases, -1 if it decreases, else 0."""
    columns = [table[name] for name in table.columns] if arrays.is_frame(table) else []
    for values in (getattr(table, "index", None), *columns):
        if str(getattr(values, "dtype", "")).lower().startswith(("date", "period")):
            dates = values.to_numpy()
            rises, falls = (dates[1:] >= dates[:-1]).all(), (dates[1:] <= dates[:-1]).all()
            if rises != falls:
                return 1 if rises else -1
    return 0


def _check_columns(x: Any, names: Sequence[str] | None, name: str = "X", *, required: bool) -> Any:
    """Return features with the columns of `fit` in order. If `required`, arrays have none."""
    if names is not None and required and not arrays.is_frame(x):
        columns = arrays.printable(", ".join(names))
        raise InvalidInputError(f"`{name}` must be a frame with the columns of `fit`: {columns}.")
    return arrays.in_columns(x, names, name, _OF_FIT)


def _in_range(labels: Array, name: str) -> Array:
    """Return labels if their squares are numbers in single precision, in which models train."""
    largest = float(np.abs(labels).max())
    if largest and not _SMALLEST <= largest <= _LARGEST:
        wanted = f"its largest number between {_SMALLEST:g} and {_LARGEST:g}"
        got = f"{largest:.3g}. Choose another unit for the labels"
        raise InvalidInputError(f"`{name}` must have {wanted}, got {got}.")
    return labels


def _check_rows(x: Any, y: Any, n: int, called: Sequence[str]) -> None:
    """Check the number of rows. The error says what to do with a row for each item."""
    if len(x) == n:
        return
    features, labels = called[:2]
    advice = ""
    if len(x) >= 2 * n:
        code, shape = f": `{features}", (n, -1, x.shape[-1])
        if arrays.is_frame(y) and hasattr(x, "iloc"):
            numbers, shape = f"pandas.get_dummies({features}, dtype=float)", (n, y.shape[1], -1)
            rows = f"pandas.MultiIndex.from_product([{labels}.index, {labels}.columns])"
            code = f". With instance and item as levels of the index: `{numbers}.reindex({rows})"
        advice = " If there is a row for each item of an instance, pass an array (n, items, p)"
        advice += f"{code}.to_numpy().reshape{shape}`."
    wanted = f"one row per instance ({n}, as `{labels}` has)"
    raise InvalidInputError(f"`{features}` must have {wanted}, got {len(x)}.{advice}")
