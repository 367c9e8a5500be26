r"""BoostingLearner: trains boosted trees on a learned loss, for every framework.

A model is a constant, the mean label, plus trees. On a loss made of decisions, trees continue from
the baseline: such a loss says in which direction a prediction should move, but hardly where it
should be. A loss fitted to regrets is a kind of squared error around the label and starts from the
mean, which was better for orders under a budget (newsvendor).

The baseline's predictions that trees start from are *out of fold* on the training instances: a
fitted model hardly errs on those, so nothing would be left to learn. The inner folds also say how
many trees it should have. If masks are a partition, each inner model leaves out two folds.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np

from lodl._arrays import take_rows
from lodl._typing import Array, Index, Masks
from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss, is_squared_error, squared_error_loss
from lodl.training._features import as_rows, check_features, check_masks, count_items, inner_folds
from lodl.training._learner import Learner
from lodl.training.boosting._trees import BoostedPredictor, Boosting, BoostingObjective, Watched

_DEFAULT_RATE = 0.3  # XGBoost's default learning rate
_N_FOLDS = 3  # folds of the baseline's out-of-fold predictions
_MIN_FOLDS, _MAX_FOLDS = 4, 7  # for which pairs of folds take fewer models than inner folds


class _Start(NamedTuple):
    """A model that trees are added to, and its predictions of the training rows."""

    model: BoostedPredictor
    margin: Array


@dataclass(frozen=True, eq=False)
class BoostingLearner(Learner):
    """Boost trees on a learned loss."""

    predictor: ClassVar[type[BoostedPredictor]]
    trees: ClassVar[type[Boosting]]
    regressor: ClassVar[Any]
    fixed: ClassVar[Mapping[str, tuple[Any, ...]]]  # parameters that may have these values only
    stops_early = True
    takes_frames = True

    #: The regressor whose parameters are used. It is not changed. The patience is its
    #: `early_stopping_rounds`, by default 3 / learning rate, between 10 and 50.
    estimator: Any
    seed: int = 0  #: Random seed for the folds and, unless the estimator has one, the trees.

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, self.regressor):
            raise InvalidInputError(
                f"`estimator` must be of class {self.regressor.__name__}, got {self.estimator!r}."
            )
        given = self.estimator.get_params()
        for name, values in self.fixed.items():
            if given.get(name) not in values:
                raise InvalidInputError(
                    f"`{name}` of the estimator must be left at {values[0]!r}, because the learner "
                    f"replaces it, got {given[name]!r}."
                )

    @property
    @abstractmethod
    def max_steps(self) -> int: ...

    @property
    def learning_rate(self) -> float:
        return self.estimator.learning_rate or _DEFAULT_RATE

    @property
    def patience(self) -> int:
        given: int | None = self.estimator.get_params().get("early_stopping_rounds")
        return given or round(min(max(3 / self.learning_rate, 10), 50))

    def train_plainly(self, x: Any, y: Array) -> BoostedPredictor:
        from lodl.training.sklearn import SklearnLearner  # which boosting alone does not need

        (fitted,) = SklearnLearner(self.estimator).train(x, squared_error_loss(y))
        rows, models = as_rows(x), fitted.models
        parts = [self.predictor.trees_of(model, rows) for model in models]
        if len(parts) > 1:
            parts = [replace(trees, output=i) for i, trees in enumerate(parts)]
        centre = np.zeros(y[0].size // (count_items(x, y) or 1))
        n_steps = max(trees.n_rounds for trees in parts)
        return self.predictor(centre, tuple(parts), tuple(y.shape[1:]), x.shape[-1], n_steps)

    def prepare(self, x: Any, y: Array, masks: Masks | None = None) -> "_Prepared":
        return _Prepared(self, check_features(x, len(y)), y, check_masks(masks, len(y)))

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        masks: Masks | None = None,
        *,
        prepared: "_Prepared | None" = None,
        n_steps: int | None = None,
    ) -> list[BoostedPredictor]:
        known = prepared or self.prepare(x, loss.y, masks)
        if is_squared_error(loss):
            return [fold.baseline(n_steps) for fold in known.folds]
        starts = known.starts if loss.family.uses_slopes else [fold.mean for fold in known.folds]
        pairs = zip(known.folds, starts, strict=True)
        return [fold.boosted(loss, start, n_steps) for fold, start in pairs]


class _Fold:
    """The instances of one mask, and trees of squared error that losses share."""

    def __init__(self, learner: BoostingLearner, x: Any, y: Array, index: Index) -> None:
        self.learner, self.x, self.y, self.index = learner, x, y, index
        self.rest = np.setdiff1d(np.arange(len(y)), index)
        self.rows = as_rows(take_rows(x, index))

    @cached_property
    def mean(self) -> _Start:
        """The mean label."""
        n_items, y = count_items(self.x, self.y), self.y[self.index]
        centre = y.reshape(len(y) * (n_items or 1), -1).mean(axis=0)
        model = self.learner.predictor(centre, (), tuple(y.shape[1:]), self.x.shape[-1], 0)
        return _Start(model, model.margin(self.rows))

    @cached_property
    def squared_error(self) -> tuple[Boosting, int]:
        """Trees of squared error from the mean label, and how many the other instances want."""
        return self.stopped(squared_error_loss(self.y), self.mean)

    def baseline(self, n_steps: int | None = None) -> BoostedPredictor:
        """Return the model of squared error. Trees that grew until they were stopped grow on."""
        trees, best = self.squared_error
        return _with_trees(self.mean, trees, best if n_steps is None else n_steps)

    def boosted(self, loss: LearnedLoss, start: _Start, n_steps: int | None) -> BoostedPredictor:
        """Return a start with trees of a loss: `n_steps`, or until other instances stop them."""
        if n_steps is None:
            return _with_trees(start, *self.stopped(loss, start))
        return _with_trees(start, self.sprout(loss, start), n_steps)

    def stopped(self, loss: LearnedLoss, start: _Start) -> tuple[Boosting, int]:
        """Return trees that the other instances stopped, if there are some, and the best round."""
        if not len(self.rest):
            return self.sprout(loss, start), self.learner.max_steps
        trees, ((best, _),) = self.grow(loss, start, [self.rest])
        return trees, best

    def grow(
        self, loss: LearnedLoss, start: _Start, parts: Sequence[Index]
    ) -> tuple[Boosting, list[tuple[int, Array]]]:
        """Return trees that parts stopped, the best round of each part and its predictions then."""
        watched = []
        for part in parts:
            rows = as_rows(take_rows(self.x, part))
            watched.append(Watched(rows, start.model.margin(rows), loss.subset(part)))
        trees = self.sprout(loss, start)
        return trees, trees.run(self.learner.max_steps, watched, self.learner.patience)

    def sprout(self, loss: LearnedLoss, start: _Start) -> Boosting:
        """Return trees without a round."""
        objective = BoostingObjective.of(loss.subset(self.index), start.margin)
        estimator, seed = self.learner.estimator, self.learner.seed
        return self.learner.trees(estimator, seed, self.rows, objective)


class _Prepared:
    """The folds of all masks, and the starts of losses made of decisions, made on first use."""

    def __init__(self, learner: BoostingLearner, x: Any, y: Array, masks: Masks) -> None:
        self.learner, self.x, self.y, self.masks = learner, x, y, masks
        self.folds = [_Fold(learner, x, y, np.flatnonzero(mask)) for mask in masks]

    @cached_property
    def starts(self) -> list[_Start]:
        """The baseline of each mask, with out-of-fold predictions of its training rows."""
        loss, p = squared_error_loss(self.y), [np.empty(self.y.shape) for _ in self.folds]
        rounds: list[list[int]] = [[] for _ in self.folds]
        for index, parts in self._inner():
            fold = _Fold(self.learner, self.x, self.y, index)
            _, results = fold.grow(loss, fold.mean, [part for _, part in parts])
            for (k, part), (best, margin) in zip(parts, results, strict=True):
                p[k][part] = margin.reshape(p[k][part].shape)
                rounds[k].append(best)
        starts = []
        for k, fold in enumerate(self.folds):
            model = fold.baseline(round(float(np.mean(rounds[k]))))
            starts.append(_Start(model, p[k][fold.index].reshape(fold.mean.margin.shape)))
        return starts

    def _inner(self) -> Iterator[tuple[Index, list[tuple[int, Index]]]]:
        """Yield instances to train on, and the parts to predict for the starts of some folds."""
        is_partition = bool(((~self.masks).sum(axis=0) == 1).all())
        if is_partition and _MIN_FOLDS <= len(self.folds) <= _MAX_FOLDS:
            for j, k in combinations(range(len(self.folds)), 2):
                of_j, of_k = self.folds[j].rest, self.folds[k].rest
                index = np.setdiff1d(np.arange(len(self.y)), np.concatenate([of_j, of_k]))
                yield index, [(k, of_j), (j, of_k)]
            return
        for k, fold in enumerate(self.folds):
            for rest, part in inner_folds(len(fold.index), _N_FOLDS, self.learner.seed):
                yield fold.index[rest], [(k, fold.index[part])]


def _with_trees(start: _Start, trees: Boosting, n_steps: int) -> BoostedPredictor:
    trees.run(n_steps)
    parts = (trees.trees(n_steps),) if n_steps and trees.n_rounds else ()
    return replace(start.model, parts=(*start.model.parts, *parts), n_steps=n_steps)
