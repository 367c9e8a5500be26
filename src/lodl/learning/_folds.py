"""Folds: which instances train and validate each model, and models trained without their fold."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lodl._arrays import Features, check_same_rows, context_of, row_keys, take_rows
from lodl._digest import digest
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.learning._data import Data
from lodl.losses import LearnedLoss
from lodl.training import Learner, Predictor

_N_FOR_HOLDOUT = 3000  # instances from which on one held-out part is enough to select by
_N_FOLDS, _SHARE = 5, 0.2
_MISSING = ("None", "nan", "NaN", "NaT", "<NA>")  # how missing values are printed

Index = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Validation: TypeAlias = Any
"""A number of folds, a share, `(X, Y[, context])`, a splitter of scikit-learn, or None."""
Groups: TypeAlias = Sequence[Any] | npt.NDArray[Any] | None
"""The group of each instance."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Folds:
    """The instances that train and validate each model.

    Attributes:
        masks: Whether model k trains on instance i, shape (n_models, n).
        parts: Whether instance i validates model k, shape (n_models, n).
        n_final: A final model may be trained on the first instances, this many.
    """

    masks: Mask
    parts: Mask
    n_final: int

    @classmethod
    def of(
        cls, data: Data, validation: Validation, groups: Groups, *, seed: int, rows: Any
    ) -> "Folds":
        """Return the folds of training instances.

        A model is never validated by an exact copy of an instance that it was trained on.

        Args:
            data: The training instances.
            validation: See `DecisionFocusedRegressor.fit`.
            groups: The group of each instance, or None.
            seed: Random seed of the folds.
            rows: The features as they were given, whose index names the rows.
        """
        n = len(data.y)
        if n < 2:
            raise InvalidInputError(
                "`Y` must have at least 2 instances, so that one can be held out, got 1 sample."
            )
        together = None if groups is None else _group_numbers(groups, n)
        check_same_rows(X=rows, groups=groups)
        originals = _originals(data)
        _warn_of_copies(originals)
        if hasattr(validation, "split") and not isinstance(validation, str):
            masks, parts = _of_splitter(validation, rows, data.y, together)
        else:
            parts = _parts(originals if together is None else together, validation, seed)
            masks = ~parts
        for mask, part in zip(masks, parts, strict=True):
            mask &= ~np.isin(originals, originals[part])
        return cls(masks, parts, n)

    @classmethod
    def given(cls, data: Data, n: int) -> "Folds":
        """Return one fold, which the instances from position `n` on validate."""
        is_copy = _originals(data)[n:] < n
        if is_copy.any():
            _logger.warning(
                "%d of %d validation instances are also training instances: the validation regret "
                "is too low. Leave them out of one of the two.",
                is_copy.sum(),
                len(is_copy),
            )
        part = np.arange(len(data.y))[np.newaxis] >= n
        return cls(~part, part, n)

    @property
    def validation(self) -> Index:
        """Positions of all instances that validate a model."""
        return np.flatnonzero(self.parts.any(axis=0))

    def joined(self, values: Iterable[Array], otherwise: Array) -> Array:
        """Return for each instance the mean value of the models that it validates.

        Args:
            values: The values of each model for the instances that validate it.
            otherwise: The values of instances that validate no model.
        """
        mean, n_models = np.array(otherwise, dtype=np.float64), self.parts.sum(axis=0)
        mean[n_models > 0] = 0.0
        for part, value in zip(self.parts, values, strict=True):
            mean[part] += value
        n_models = np.maximum(n_models, 1).reshape(-1, *[1] * (mean.ndim - 1))
        return np.asarray(mean / n_models)

    def means(self, y: Array) -> Array:
        """Return the mean training label of the model that each instance validates."""
        means = (y[mask].mean(axis=0) for mask in self.masks)
        return self.joined(means, np.broadcast_to(y.mean(axis=0), y.shape))

    def describe(self, n_compared: int) -> str:
        """Return how many instances are compared, and how they were held out."""
        how = f"{len(self.parts)} folds" if len(self.parts) > 1 else "held out once"
        return f"{n_compared:,} instance{'s' * (n_compared != 1)}, {how}"


@dataclass(frozen=True, eq=False)
class CrossFit:
    """One model per fold.

    Attributes:
        models: The models, in the order of the folds.
        n_steps: How long to train a model on all instances.
    """

    models: Sequence[Predictor]
    n_steps: int


def cross_fit(
    learner: Learner,
    x: Features,
    loss: LearnedLoss,
    folds: Folds,
    *,
    prepared: Any = None,
    n_steps: int | None = None,
) -> tuple[CrossFit, Array]:
    """Train a model per fold. Returns them with the predictions for instances they have not seen.

    The last model predicts instances that validate none.

    Args:
        learner: Trains the models.
        x: Features of all instances.
        loss: Their loss.
        folds: The folds.
        prepared: What the learner prepared for these features, labels and masks.
        n_steps: Steps to train. By default, the instances outside a mask stop the training.
    """
    models = learner.train(x, loss, folds.masks, prepared=prepared, n_steps=n_steps)
    y_hats = (
        model.predict(take_rows(x, np.flatnonzero(part)))
        for model, part in zip(models, folds.parts, strict=True)
    )
    y_hat = folds.joined(y_hats, models[-1].predict(x))
    steps = round(float(np.mean([model.n_steps for model in models])))
    return CrossFit(models, steps), y_hat


def _parts(groups: Index, validation: Any, seed: int) -> Mask:
    """Return random parts of whole groups: several folds, or one share of the groups."""
    _, numbers = np.unique(groups, return_inverse=True)
    n, n_groups = len(groups), int(numbers.max()) + 1
    if n_groups < 2:
        raise InvalidInputError("At least 2 different instances or groups are needed, got 1.")
    if validation is None:
        validation = min(_N_FOLDS, n_groups) if n < _N_FOR_HOLDOUT else _SHARE
    order = np.random.default_rng(seed).permutation(n_groups)
    if isinstance(validation, int | np.integer) and not isinstance(validation, bool):
        if not 2 <= validation <= n_groups:
            raise InvalidInputError(
                "`validation`, if a number of folds, must be from 2 to the number of different "
                f"instances or groups ({n_groups}), got {validation}."
            )
        return np.stack([np.isin(numbers, part) for part in np.array_split(order, validation)])
    if not isinstance(validation, float) or not 0 < validation < 1:
        raise InvalidInputError(
            "`validation` must be a number of folds, a share between 0 and 1, a splitter of "
            f"scikit-learn, or a tuple `(X, Y)` or `(X, Y, context)`, got {validation!r}."
        )
    n_held_out = min(max(1, round(validation * n_groups)), n_groups - 1)
    return np.isin(numbers, order[n_groups - n_held_out :])[np.newaxis]


def _of_splitter(splitter: Any, x: Any, y: Array, groups: Index | None) -> tuple[Mask, Mask]:
    """Return the masks and parts of a splitter of scikit-learn."""
    splits = list(splitter.split(x, y, groups))
    masks, parts = (np.zeros((len(splits), len(y)), dtype=bool) for _ in range(2))
    for k, (trained, validated) in enumerate(splits):
        masks[k, trained], parts[k, validated] = True, True
    if not splits or not (masks.any(axis=1) & parts.any(axis=1)).all():
        raise InvalidInputError(
            f"`validation` must give instances to train and to validate, got none of {splitter}."
        )
    return masks, parts


def _warn_of_copies(originals: Index) -> None:
    n = len(originals)
    n_copies = int(np.sum(originals != np.arange(n)))
    if n_copies:
        _logger.warning(
            "%d of %d instances are exact copies of others. Copies are held out together, so that "
            "no model is validated by instances that it was trained on.",
            n_copies,
            n,
        )
    if n - n_copies < 2:
        raise InvalidInputError(
            "`X` and `Y` must have at least 2 different instances, so that one can be held out, "
            f"got 1 and {n_copies} copies of it."
        )


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
    expected = f"`groups` must be one value per instance ({n}), such as a name or a number, got"
    shape = getattr(groups, "shape", ())
    if len(shape) > 1:
        raise InvalidInputError(f"{expected} shape {tuple(shape)}. Join several columns into one.")
    if isinstance(groups, str | bytes | dict) or not hasattr(groups, "__len__"):
        raise InvalidInputError(f"{expected} {type(groups).__name__}.")
    values = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    if len(values) != n:
        raise InvalidInputError(
            f"`groups` must have one entry per instance ({n}), got {len(values)}."
        )
    numbers: dict[Any, int] = {}
    for i, value in enumerate(values):
        if isinstance(value, tuple | list | dict | set):
            raise InvalidInputError(
                f"{expected} {type(value).__name__} for instance {i}. Join several values into "
                "one text."
            )
        if not isinstance(value, str) and str(value) in _MISSING:
            raise InvalidInputError(
                f"`groups` must not be missing, got {value} for instance {i}. Name a group for "
                "each instance."
            )
        numbers.setdefault(value, len(numbers))
    if len(numbers) < 2:
        raise InvalidInputError("`groups` must name at least 2 groups, got 1.")
    return np.array([numbers[value] for value in values])
