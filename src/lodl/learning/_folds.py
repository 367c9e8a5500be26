"""Folds: which instances train and validate each model, and a model trained for each."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lodl._arrays import check_same_rows, context_of, row_keys, take_rows
from lodl._digest import digest
from lodl._typing import Array, Index, Masks
from lodl.errors import InvalidInputError, LodlError
from lodl.learning._data import Data
from lodl.losses import LearnedLoss
from lodl.training import Learner, Predictor

_N_FOR_HOLDOUT = 3000  # instances from which on one held-out part is enough to select by
_N_FOLDS, _HELD_OUT = 5, 0.2
_MISSING = ("None", "nan", "NaN", "NaT", "<NA>")  # how missing values are printed

Models = Sequence[Predictor]  # one per fold

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Folds:
    """The instances that train and validate each model."""

    masks: Masks  # whether model k trains on instance i, shape (n_models, n)
    parts: Masks  # whether instance i validates model k, shape (n_models, n)
    n_final: int  # a final model may be trained on the first instances, this many
    are_blocks: bool = False  # whether parts are consecutive instances, in the order of time

    @classmethod
    def of(cls, data: Data, validation: Any, groups: Any, *, seed: int, rows: Any) -> "Folds":
        """Return the folds of training instances, whose features were given as `rows`.

        A model is never validated by an exact copy of an instance that it was trained on.
        """
        n, originals = len(data.y), _originals(data)
        n_copies = n - len(np.unique(originals))
        if n - n_copies < 2:
            wanted = "at least 2 different instances, so that one can be held out"
            got = f"1 sample{f' and {n_copies} copies of it' if n_copies else ''}"
            raise InvalidInputError(f"`X` and `Y` must have {wanted}, got {got}.")
        if n_copies:
            message = "%d of %d instances are exact copies of others, which are held out together."
            _logger.warning(message, n_copies, n)
        together = originals if groups is None else _group_numbers(groups, n)
        check_same_rows(X=rows, groups=groups)
        is_splitter = hasattr(validation, "split") and not isinstance(validation, str)
        are_blocks = data.time_order != 0 and groups is None and not is_splitter
        if is_splitter:
            numbers = None if groups is None else together
            masks, parts = _of_splitter(validation, rows, data.y, numbers)
        else:
            parts = _parts(together, validation, seed, data.time_order * are_blocks)
            masks = ~parts
        if are_blocks:
            _logger.info(
                "Instances are in the order of time, so consecutive ones are held out together. "
                "`validation=KFold(5, shuffle=True)`, or --shuffle, would draw random folds."
            )
        for mask, part in zip(masks, parts, strict=True):
            mask &= ~np.isin(originals, originals[part])
        return cls(masks, parts, n, are_blocks)

    @classmethod
    def given(cls, data: Data, n: int) -> "Folds":
        """Return one fold, which the instances from position `n` on validate."""
        is_copy = _originals(data)[n:] < n
        if is_copy.any():
            _logger.warning(
                "%d of %d validation instances are also training instances: the validation regret "
                "is too low. Leave them out of one of the two.",
                *(is_copy.sum(), len(is_copy)),
            )
        part = np.arange(len(data.y))[np.newaxis] >= n
        return cls(~part, part, n)

    @property
    def validation(self) -> Index:
        """Positions of all instances that validate a model."""
        return np.flatnonzero(self.parts.any(axis=0))

    @property
    def groups(self) -> Index:
        """The fold of each validation instance, or its fifth of a single validation part."""
        rows = self.validation
        if len(self.parts) > 1:
            return np.asarray(self.parts.argmax(axis=0)[rows])
        return np.repeat(np.arange(_N_FOLDS), list(map(len, np.array_split(rows, _N_FOLDS))))

    def joined(self, values: Iterable[Array], otherwise: Array) -> Array:
        """Return each instance's mean over models that it validates, which have `values` for it."""
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
        in_order = " in the order of time" if self.are_blocks else ""
        how = f"{len(self.parts)} folds{in_order}" if len(self.parts) > 1 else "held out once"
        return f"{n_compared:,} instance{'s' * (n_compared != 1)}, {how}"


@dataclass(eq=False)
class Trainer:
    """Trains the models of one `fit`, one per fold."""

    learner: Learner
    data: Data
    folds: Folds
    _prepared: Any = field(init=False)

    def __post_init__(self) -> None:
        self._prepared = self.learner.prepare(self.data.x, self.data.y, self.folds.masks)

    def train(self, loss: LearnedLoss, n_steps: int | None = None) -> tuple[Models, Array]:
        """Return a model per fold, and out-of-fold predictions, or the last model's without one."""
        models = self.learner.train(
            self.data.x, loss, self.folds.masks, prepared=self._prepared, n_steps=n_steps
        )
        y_hats = (
            model.predict(take_rows(self.data.x, np.flatnonzero(part)))
            for model, part in zip(models, self.folds.parts, strict=True)
        )
        otherwise, is_left = self.data.y.copy(), ~self.folds.parts.any(axis=0)
        if is_left.any():
            otherwise[is_left] = models[-1].predict(take_rows(self.data.x, np.flatnonzero(is_left)))
        return models, self.folds.joined(y_hats, otherwise)

    def in_turn(self, models: Models, turn: int) -> Array:
        """Return predictions of all instances, each by one of the models: the next every turn."""
        y_hats, rows = [model.predict(self.data.x) for model in models], np.arange(len(self.data.y))
        return np.stack(y_hats)[(rows + turn) % len(models), rows]

    def train_if_possible(self, loss: LearnedLoss) -> tuple[Models, Array] | None:
        """Return None if the estimator raises on a loss: the other losses can do without it."""
        try:
            return self.train(loss)
        except LodlError:
            raise
        except Exception as error:  # noqa: BLE001 - a user's estimator may raise anything
            message = "%s is left out, because the estimator could not be trained on it: %s: %s"
            _logger.warning(message, loss.family, type(error).__name__, error)
            return None

    def train_plainly(self, loss: LearnedLoss, models: Models) -> tuple[Predictor, bool]:
        """Return the plain model, and whether its user would fit the same.

        Otherwise it takes as many steps as the models of the baseline, which were stopped.
        """
        rows = np.arange(self.folds.n_final)
        x, loss = take_rows(self.data.x, rows), loss.subset(rows)
        try:
            if (own := self.learner.train_plainly(x, loss.y)) is not None:
                return own, True
        except Exception as error:  # noqa: BLE001 - a user's estimator may raise anything
            _logger.info("The estimator's own `fit` raised %s: %s", type(error).__name__, error)
        plain = self.learner.train(x, loss, n_steps=_mean_steps(models))[0]
        return plain, not self.learner.stops_early

    def final(self, parts: Sequence[tuple[LearnedLoss, Models]], *, ensemble: bool) -> Models:
        """Return the models whose mean predicts: of all folds, or one per loss trained on all rows.

        The models of all folds decide better. Rows that were given for validation train none.
        """
        if ensemble and len(self.folds.parts) > 1:
            together = [model for _, models in parts for model in models]
            kinds = {type(model) for model in together}  # corrected models, and their base
            return list(kinds.pop().mean(together)) if len(kinds) == 1 else together
        if self.folds.n_final < len(self.data.y):
            return [models[0] for _, models in parts]
        x, prepared = self.data.x, self.learner.prepare(self.data.x, self.data.y)
        return [
            self.learner.train(x, loss, prepared=prepared, n_steps=_mean_steps(models))[0]
            for loss, models in parts
        ]


def _mean_steps(models: Models) -> int:
    return round(float(np.mean([model.n_steps for model in models])))


def _parts(groups: Index, validation: Any, seed: int, time_order: int = 0) -> Masks:
    """Return parts of whole groups, random or in the order of time: folds, or the latest share."""
    _, numbers = np.unique(groups, return_inverse=True)
    n, n_groups = len(groups), int(numbers.max()) + 1
    if validation is None:
        validation = min(_N_FOLDS, n_groups) if n < _N_FOR_HOLDOUT else _HELD_OUT
    order = np.random.default_rng(seed).permutation(n_groups)
    order = np.arange(n_groups)[::time_order] if time_order else order
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


def _of_splitter(splitter: Any, x: Any, y: Array, groups: Index | None) -> tuple[Masks, Masks]:
    """Return the masks and parts of a splitter of scikit-learn."""
    splits = list(splitter.split(x, y, groups))
    masks, parts = (np.zeros((len(splits), len(y)), dtype=bool) for _ in range(2))
    for k, (trained, validated) in enumerate(splits):
        masks[k, trained] = parts[k, validated] = True
    if not splits or not (masks.any(axis=1) & parts.any(axis=1)).all():
        expected = "`validation` must give instances to train and to validate"
        raise InvalidInputError(f"{expected}, got none of {splitter}.")
    return masks, parts


def _originals(data: Data) -> Index:
    """Return, for each instance, the first one with the same features, label and context."""
    labels, seen = row_keys(data.y), dict[Any, int]()
    n_equal, original = Counter(labels), np.arange(len(labels))
    suspects = np.array([i for i, label in enumerate(labels) if n_equal[label] > 1], dtype=np.intp)
    for i, features in zip(suspects.tolist(), row_keys(take_rows(data.x, suspects)), strict=True):
        context = None if data.context is None else digest(context_of(data.context, i))
        original[i] = seen.setdefault((labels[i], features, context), i)
    return original


def _group_numbers(groups: Any, n: int) -> Index:
    """Return the number of each instance's group, in the order in which groups appear."""
    expected = f"`groups` must be one value per instance ({n}), such as a name or a number, got"
    if len(shape := getattr(groups, "shape", ())) > 1:
        raise InvalidInputError(f"{expected} shape {tuple(shape)}. Join several columns into one.")
    if isinstance(groups, str | bytes | dict) or not hasattr(groups, "__len__"):
        raise InvalidInputError(f"{expected} {type(groups).__name__}.")
    values = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    if (got := len(values)) != n:
        raise InvalidInputError(f"`groups` must have one entry per instance ({n}), got {got}.")
    for i, value in enumerate(values):
        if isinstance(value, tuple | list | dict | set):
            kind = type(value).__name__
            raise InvalidInputError(f"{expected} {kind} for instance {i}. Join them into one text.")
        if not isinstance(value, str) and str(value) in _MISSING:
            raise InvalidInputError(f"`groups` must not be missing, got {value} for instance {i}.")
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    if len(numbers) < 2:
        raise InvalidInputError("`groups` must name at least 2 groups, got 1.")
    return np.array([numbers[value] for value in values])
