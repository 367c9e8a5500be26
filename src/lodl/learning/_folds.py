"""Which instances are held out, and predictions for instances that a model has not seen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lodl._arrays import Features, take_rows
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss
from lodl.training import Learner, Predictor

_MANY = 3000  # instances from which on a fifth is enough to choose by
_N_FOLDS = 5
_SHARE = 0.2

Index = npt.NDArray[np.intp]
Groups: TypeAlias = Sequence[Any] | npt.NDArray[Any] | None
"""The group of each instance."""


@dataclass(frozen=True, eq=False)
class Folds:
    """Parts of the instances that are held out in turn.

    Attributes:
        n: Number of instances.
        held_out: The instances of each part.
        n_final: The final model is trained on the first instances, this many.
    """

    n: int
    held_out: tuple[Index, ...]
    n_final: int

    @classmethod
    def of(
        cls,
        n: int,
        validation: int | float | None,
        *,
        shuffle: bool,
        seed: int,
        groups: Groups = None,
    ) -> "Folds":
        """Return folds of `n` instances.

        Args:
            n: Number of instances.
            validation: A whole number of folds, a share of the instances to hold out once, or None
                for five folds below 3000 instances and a fifth from there on.
            shuffle: Whether instances are drawn at random. Otherwise a share is the last of
                them, and folds are blocks.
            seed: Random seed of the draw.
            groups: The group of each instance; a group is held out as a whole.
        """
        if groups is not None:
            return cls._of_groups(n, validation, groups, shuffle=shuffle, seed=seed)
        if validation is None:
            validation = min(_N_FOLDS, n) if n < _MANY else _SHARE
        order = np.random.default_rng(seed).permutation(n) if shuffle else np.arange(n)
        if isinstance(validation, int | np.integer) and not isinstance(validation, bool):
            if not 2 <= validation <= n:
                raise InvalidInputError(
                    "`validation`, if a number of folds, must be from 2 to the number of different "
                    f"instances or groups ({n}), got {validation}."
                )
            return cls(n, tuple(np.sort(part) for part in np.array_split(order, validation)), n)
        if not isinstance(validation, float) or not 0 < validation < 1:
            raise InvalidInputError(
                "`validation` must be a number of folds, a share between 0 and 1, or a tuple "
                f"`(X, Y)` or `(X, Y, context)`, got {validation!r}."
            )
        n_held_out = min(max(1, round(validation * n)), n - 1)
        return cls(n, (np.sort(order[n - n_held_out :]),), n)

    @classmethod
    def _of_groups(
        cls, n: int, validation: int | float | None, groups: Groups, *, shuffle: bool, seed: int
    ) -> "Folds":
        """Return folds of whole groups, in the order in which the groups appear."""
        _, first, number = np.unique(np.asarray(groups), return_index=True, return_inverse=True)
        place = np.argsort(np.argsort(first))[number]  # 0 for the group that appears first
        if len(first) < 2:
            raise InvalidInputError("`groups` must name at least 2 groups, got 1.")
        if validation is None and n >= _MANY:
            validation = _SHARE
        of_groups = cls.of(len(first), validation, shuffle=shuffle, seed=seed)
        parts = (np.flatnonzero(np.isin(place, part)) for part in of_groups.held_out)
        return cls(n, tuple(parts), n)

    @classmethod
    def given(cls, n: int, n_validation: int) -> "Folds":
        """Return one part: the last instances, on which the final model is not trained."""
        n_all = n + n_validation
        return cls(n_all, (np.arange(n, n_all),), n)

    @property
    def judged(self) -> Index:
        """The instances whose decisions choose: all that are held out once."""
        return np.sort(np.concatenate(self.held_out))

    @property
    def masks(self) -> npt.NDArray[np.bool_]:
        """Which instances each model trains on, shape (n_parts, n)."""
        masks = np.ones((len(self.held_out), self.n), dtype=np.bool_)
        for mask, part in zip(masks, self.held_out, strict=True):
            mask[part] = False
        return masks

    def rest(self, held_out: Index) -> Index:
        """Return the instances that are not in a part."""
        return np.setdiff1d(np.arange(self.n), held_out)

    def means(self, y: Array) -> Array:
        """Return, for each instance, the mean label of those it is not held out with."""
        means = np.broadcast_to(y.mean(axis=0), y.shape).copy()
        for part in self.held_out:
            means[part] = y[self.rest(part)].mean(axis=0)
        return means

    def in_words(self, n_judged: int) -> str:
        """Return how many instances are compared, and how they were held out."""
        how = f"{len(self.held_out)} folds" if len(self.held_out) > 1 else "held out once"
        return f"{n_judged:,} instance{'s' * (n_judged != 1)}, {how}"


@dataclass(frozen=True, eq=False)
class Average:
    """The mean of the predictions of several models.

    Attributes:
        models: The models.
        label_shape: The shape of a label, where it is not that of the models' predictions.
        features: Checks features before they are given to the models.
    """

    models: Sequence[Predictor]
    label_shape: tuple[int, ...] | None = None
    features: Callable[[Any], Features] | None = None

    def predict(self, x: Features) -> Array:
        """Return predictions, shape (n, *label_shape)."""
        x = x if self.features is None else self.features(x)
        y_hat = np.asarray(np.mean([model.predict(x) for model in self.models], axis=0))
        return y_hat if self.label_shape is None else y_hat.reshape(len(y_hat), *self.label_shape)


@dataclass(frozen=True, eq=False)
class CrossFit:
    """A model per part that was trained without it.

    Attributes:
        models: The models, in the order of the parts.
        y_hat: Predictions of each instance by the model that has not seen it, shape
            (n, *label_shape); of instances that are never held out, by the last model.
        n_steps: How long a model on all instances should be trained.
    """

    models: tuple[Predictor, ...]
    y_hat: Array
    n_steps: int


def cross_fit(
    learner: Learner,
    x: Features,
    loss: LearnedLoss,
    folds: Folds,
    *,
    prepared: Any = None,
    stops: bool = True,
) -> CrossFit:
    """Train a model without each part and predict the part.

    Training stops on the part's own loss, or, unless `stops`, when the learner's steps are over.
    """
    n_steps = None if stops else learner.max_steps
    models = learner.train(x, loss, folds.masks, prepared=prepared, n_steps=n_steps)
    y_hat = models[-1].predict(x)
    for part, model in zip(folds.held_out, models, strict=True):
        y_hat[part] = model.predict(take_rows(x, part))
    steps = round(float(np.mean([model.n_steps for model in models])))
    return CrossFit(tuple(models), y_hat, steps)
