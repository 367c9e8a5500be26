r"""Gradient boosting on a learned loss, for every framework that grows trees.

A model is a constant, the mean label, plus trees. For a loss made of decisions, trees go on where
2-stage ends: such a loss says in which direction a prediction should move, hardly where it should
be, and trees that start from the mean label lost on paths and knapsacks. A loss that is fitted to
regrets is a kind of squared error around the label and starts from the mean, which was better for
orders under a budget (newsvendor).

What trees start from is *out of fold* on the training instances: a fitted model hardly errs on
those, so nothing would be left to learn. The squared error of the held-out folds also says how many
trees 2-stage should have. All this depends on features and labels only, not on the loss, and is
done once for all losses of the same instances. Where folds are trained together, the predictions
that fold k starts from come from models that saw neither k nor the fold they predict; such a model
serves two folds, so that five folds need ten of them.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from lodl._arrays import check_count, take_rows
from lodl._typing import Array
from lodl.losses import LearnedLoss, is_squared_error, squared_error_loss
from lodl.training._boosted import BoostedPredictor
from lodl.training._boosting_objective import BoostingObjective
from lodl.training._boosting_rounds import Boosting, Stopping
from lodl.training._features import as_rows, check_features, check_masks, count_items
from lodl.training._inner_folds import Index, inner_folds
from lodl.training._learner import Learner, Masks
from lodl.training._remembered import Remembered

_DEFAULT_RATE = 0.3  # XGBoost's learning rate where none is given
_FEWEST_FOLDS, _MOST_FOLDS = 4, 7  # for which pairs of folds are worth it


@dataclass(frozen=True, eq=False)
class Start:
    """What trees are added to: a model, and its predictions of the training rows."""

    model: BoostedPredictor
    margin: Array


@dataclass(frozen=True, eq=False)
class BoostingLearner(Learner):
    """Boost trees on a learned loss.

    Attributes:
        estimator: The regressor whose parameters are used; it is not changed. Its number of trees
            is the largest, its `early_stopping_rounds` say when validation instances stop it; if it
            has none, 3 / learning rate does, between 10 and 50.
        n_folds: Folds for out-of-fold predictions of 2-stage.
        seed: Random seed for the folds and, unless the estimator has one, the trees.
    """

    estimator: Any
    n_folds: int = 3
    seed: int = 0
    _grown: Remembered[Boosting] = field(default_factory=Remembered, init=False, repr=False)
    _starts: Remembered[list[Start]] = field(default_factory=Remembered, init=False, repr=False)
    predictor: ClassVar[type[BoostedPredictor]]
    stops_early = True
    takes_frames = True

    def __post_init__(self) -> None:
        check_count("n_folds", self.n_folds, minimum=2)

    @abstractmethod
    def boosting(self, x: Any, margin: Array, objective: BoostingObjective) -> Boosting:
        """Return trees that will grow.

        Args:
            x: Features, one row each.
            margin: Predictions to start from, shape (rows, outputs).
            objective: What to minimise.
        """

    @property
    @abstractmethod
    def max_steps(self) -> int:
        """Number of trees of the estimator."""

    @property
    def learning_rate(self) -> float:
        """The learning rate of the estimator."""
        return self.estimator.learning_rate or _DEFAULT_RATE

    @property
    def patience(self) -> int:
        """Rounds to wait for a better validation loss."""
        given: int | None = self.estimator.get_params().get("early_stopping_rounds")
        return given or round(min(max(3 / self.learning_rate, 10), 50))

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        masks: Masks | None = None,
        *,
        prepared: Any = None,
        n_steps: int | None = None,
    ) -> list[BoostedPredictor]:
        x = check_features(x, loss.n_instances)
        if masks is None:
            return [self._train_one(x, loss, n_steps=n_steps)]
        masks = check_masks(masks, loss.n_instances)
        if (~masks).sum(axis=0).max() == 1 and n_steps in (None, self.max_steps):
            parts = [np.flatnonzero(~mask) for mask in masks]
            at_once = self._train_folds(x, loss, parts, stops=n_steps is None)
            if at_once is not None:
                return at_once
        models = []
        for mask in masks:
            rest, part = np.flatnonzero(mask), np.flatnonzero(~mask)
            stop: dict[str, Any] = {"n_steps": n_steps}
            if n_steps is None and len(part):
                stop = {"x_validation": take_rows(x, part), "loss_validation": loss.subset(part)}
            models.append(self._train_one(take_rows(x, rest), loss.subset(rest), **stop))
        return models

    def _train_one(
        self,
        x: Any,
        loss: LearnedLoss,
        *,
        x_validation: Any = None,
        loss_validation: LearnedLoss | None = None,
        n_steps: int | None = None,
    ) -> BoostedPredictor:
        x = check_features(x, loss.n_instances)
        if loss.family.uses_slopes:
            start = self._starts.get(x, [loss.y], lambda: [self._two_stage(x, loss.y)])[0]
        else:
            start = _mean_label(self.predictor, x, loss.y)
        if x_validation is None or loss_validation is None:
            return self._boosted(start, x, loss, None, n_steps)
        held_out = check_features(
            x_validation, loss_validation.n_instances, n_features=start.model.n_features
        )
        stopping = self._stopping(start.model, held_out, loss_validation)
        return self._boosted(start, x, loss, stopping)

    def _train_folds(
        self, x: Any, loss: LearnedLoss, held_out: Sequence[Index], *, stops: bool = True
    ) -> list[BoostedPredictor] | None:
        """Return a model trained without each part, stopped on the part's own loss.

        None where nothing is to be shared: the loss starts from the mean label, training does not
        stop early, or the parts are too few, too many or not all instances.
        """
        is_split = sum(map(len, held_out)) == loss.n_instances
        can_share = stops and loss.family.uses_slopes and is_split
        if not can_share or not _FEWEST_FOLDS <= len(held_out) <= _MOST_FOLDS:
            return None
        x = check_features(x, loss.n_instances)
        number = np.empty(loss.n_instances)
        for k, part in enumerate(held_out):
            number[part] = k
        starts = self._starts.get(
            x, [loss.y, number], lambda: self._two_stages(x, loss.y, held_out)
        )
        models = []
        for start, part in zip(starts, held_out, strict=True):
            rest = _rest(loss.n_instances, part)
            stopping = self._stopping(start.model, take_rows(x, part), loss.subset(part))
            models.append(self._boosted(start, take_rows(x, rest), loss.subset(rest), stopping))
        return models

    def _boosted(
        self,
        start: Start,
        x: Any,
        loss: LearnedLoss,
        stopping: Stopping | None,
        n_steps: int | None = None,
    ) -> BoostedPredictor:
        """Return a start with trees: as many as `stopping` finds best, else `n_steps`."""

        def sprout() -> Boosting:
            return self.boosting(as_rows(x), start.margin, BoostingObjective.of(loss))

        n_steps = self.max_steps if n_steps is None else n_steps
        if not is_squared_error(loss):
            trees = sprout()
        elif stopping is None:  # trees that grew until they were stopped are as good, and grow on
            trees = self._grown.get(x, [loss.y], sprout)
        else:
            trees = self._grown.put(x, [loss.y], sprout())
        trees.run(n_steps, () if stopping is None else (stopping,))
        best = n_steps if stopping is None else stopping.best_round
        parts = (trees.trees(best),) if best and trees.n_rounds else ()
        return replace(start.model, parts=(*start.model.parts, *parts), n_steps=best)

    def _stopping(self, start: BoostedPredictor, x: Any, loss: LearnedLoss) -> Stopping:
        rows = as_rows(x)
        return Stopping(rows, start.margin(rows), _mean_loss(loss), self.patience)

    def _two_stage(self, x: Any, y: Array) -> Start:
        """Return 2-stage, with out-of-fold predictions by folds of its own."""
        p, n_steps = np.empty(y.shape), []
        for rest, part in inner_folds(len(y), self.n_folds, self.seed):
            (found,) = self._squared_error(x, y, rest, [part])
            p[part] = found.best_margin.reshape(p[part].shape)
            n_steps.append(found.best_round)
        return self._started(x, y, p, n_steps)

    def _two_stages(self, x: Any, y: Array, held_out: Sequence[Index]) -> list[Start]:
        """Return 2-stage without each part, with out-of-fold predictions by pairs of parts."""
        p: list[Array] = [np.empty(y.shape) for _ in held_out]
        n_steps: list[list[int]] = [[] for _ in held_out]
        for j, k in combinations(range(len(held_out)), 2):
            rest = _rest(len(y), np.concatenate([held_out[j], held_out[k]]))
            found = self._squared_error(x, y, rest, [held_out[j], held_out[k]])
            for predicted, other, one in ((j, k, found[0]), (k, j, found[1])):
                part = held_out[predicted]
                p[other][part] = one.best_margin.reshape(y[part].shape)
                n_steps[other].append(one.best_round)
        starts = []
        for k, part in enumerate(held_out):
            rest = _rest(len(y), part)
            starts.append(self._started(take_rows(x, rest), y[rest], p[k][rest], n_steps[k]))
        return starts

    def _squared_error(
        self, x: Any, y: Array, rest: Index, parts: Sequence[Index]
    ) -> list[Stopping]:
        """Boost on squared error of some instances; return what was best for each of the parts."""
        features, loss = take_rows(x, rest), squared_error_loss(y)
        start = _mean_label(self.predictor, features, y[rest])
        objective = BoostingObjective.of(loss.subset(rest))
        stopping = [
            self._stopping(start.model, take_rows(x, part), loss.subset(part)) for part in parts
        ]
        self.boosting(as_rows(features), start.margin, objective).run(self.max_steps, stopping)
        return stopping

    def _started(self, x: Any, y: Array, p: Array, n_steps: Sequence[int]) -> Start:
        """Return 2-stage of as many rounds as were best on average, and predictions of it."""
        mean, loss = _mean_label(self.predictor, x, y), squared_error_loss(y)
        model = self._boosted(mean, x, loss, None, round(float(np.mean(n_steps))))
        return Start(model, p.reshape(mean.margin.shape))


def _mean_label(kind: type[BoostedPredictor], x: Any, y: Array) -> Start:
    n_items = count_items(x, y)
    centre = y.reshape(len(y) * (n_items or 1), -1).mean(axis=0)
    model = kind(centre, (), tuple(y.shape[1:]), x.shape[-1], 0)
    return Start(model, model.margin(as_rows(x)))


def _mean_loss(loss: LearnedLoss) -> Callable[[Array], float]:
    return lambda margin: float(loss.value(margin.reshape(loss.y.shape)).mean())


def _rest(n: int, part: Index) -> Index:
    return np.setdiff1d(np.arange(n), part)
