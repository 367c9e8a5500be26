r"""BoostingLearner: trains boosted trees on a learned loss, for every framework.

A model is a constant, the mean label, plus trees. On a loss fitted to regrets, which is a kind of
squared error around the label, trees grow from the mean. A loss made of decisions says in which
direction a prediction should move, but hardly where it should be: the trees of squared error stay
as they are, and their *out-of-fold* residuals are corrected, first by a linear model, which is
enough if labels are nearly linear in the features, then by trees, which also find what is not.

Trees that correct, and those whose predictions out of fold alone are needed, grow in larger steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from lodl._arrays import check_instance_of, take_rows
from lodl._typing import Array, Masks
from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss, is_squared_error, squared_error_loss
from lodl.training._features import as_rows, count_items
from lodl.training._learner import Predictor
from lodl.training.boosting._trees import BoostedPredictor, Boosting, BoostingObjective
from lodl.training.corrected import Corrected, CorrectedPredictor, Nested, PartsLearner, Residuals

_DEFAULT_RATE = 0.3  # XGBoost's default learning rate
_CONSTRAINTS = ("monotone_constraints", "interaction_constraints")  # only trees keep them
_QUICK_PATIENCE = 5  # patience of corrections
_QUICK_RATE = 0.5  # least learning rate of corrections, and of trees that predict out of fold


@dataclass(frozen=True, eq=False)
class BoostingLearner(PartsLearner):
    """Boost trees on a learned loss."""

    predictor: ClassVar[type[BoostedPredictor]]
    trees: ClassVar[type[Boosting]]
    regressor: ClassVar[Any]
    fixed: ClassVar[Mapping[str, tuple[Any, ...]]]  # parameters that may have these values only
    also_quick: ClassVar[Mapping[str, Any]] = {}  # parameters of trees that grow in larger steps
    stops_early = True
    takes_frames = True

    #: The regressor whose parameters are used. It is not changed. The patience is its
    #: `early_stopping_rounds`, by default 3 / learning rate, between 10 and 50.
    estimator: Any
    seed: int = 0  #: Random seed for the folds and, unless the estimator has one, the trees.

    def __post_init__(self) -> None:
        wanted = f"of class {self.regressor.__name__}"
        check_instance_of(self.regressor, "estimator", self.estimator, wanted=wanted)
        given = self.estimator.get_params()
        for name, values in self.fixed.items():
            if given.get(name) not in values:
                raise InvalidInputError(
                    f"`{name}` of the estimator must be left at {values[0]!r}, because the learner "
                    f"replaces it, got {given[name]!r}."
                )

    @property
    def max_steps(self) -> int:
        return int(self.parameters["n_estimators"])

    @property
    def learning_rate(self) -> float:
        return float(self.parameters["learning_rate"] or _DEFAULT_RATE)

    @property
    def parameters(self) -> dict[str, Any]:
        """The estimator's parameters, under one name each."""
        return dict(self.estimator.get_params())

    def quick(self) -> Self:
        """Return a learner that takes larger steps."""
        quick = {"learning_rate": max(self.learning_rate, _QUICK_RATE), **self.also_quick}
        given = {**self.parameters, **quick, "early_stopping_rounds": _QUICK_PATIENCE}
        return replace(self, estimator=type(self.estimator)(**given))

    @property
    def patience(self) -> int:
        given: int | None = self.estimator.get_params().get("early_stopping_rounds")
        return given or round(min(max(3 / self.learning_rate, 10), 50))

    def train_plainly(self, x: Any, y: Array) -> BoostedPredictor:
        from lodl.training.sklearn import SklearnLearner  # boosting alone does not need it

        (fitted,) = SklearnLearner(self.estimator).train(x, squared_error_loss(y))
        rows, models = as_rows(x), fitted.models
        parts = [self.predictor.trees_of(model, rows) for model in models]
        if len(parts) > 1:
            parts = [replace(trees, output=i) for i, trees in enumerate(parts)]
        centre = np.zeros(y[0].size // (count_items(x, y) or 1))
        n_steps = max(trees.n_rounds for trees in parts)
        return self.predictor(centre, tuple(parts), tuple(y.shape[1:]), x.shape[-1], n_steps)

    def prepare(self, x: Any, y: Array, masks: Masks | None = None) -> "list[_Part]":
        nested = Nested(self.quick(), x, y, masks, self.seed)
        return [_Part(Corrected(self, seed=self.seed), nested, k) for k in range(len(nested.masks))]


class _Fold:
    """Trees that grow on the instances of one mask, from the mean label or, as a correction, 0."""

    def __init__(
        self, learner: BoostingLearner, x: Any, y: Array, mask: Masks, *, corrects: bool = False
    ) -> None:
        self.learner, self.x, self.y, self.corrects = learner, x, y, corrects
        self.index, self.rest = np.flatnonzero(mask), np.flatnonzero(~mask)
        self.rows = as_rows(take_rows(x, self.index))

    @cached_property
    def start(self) -> BoostedPredictor:
        """The model without trees."""
        n_items, y = count_items(self.x, self.y), self.y[self.index]
        centre = y.reshape(len(y) * (n_items or 1), -1).mean(axis=0) * (not self.corrects)
        return self.learner.predictor(centre, (), tuple(y.shape[1:]), self.x.shape[-1], 0)

    @cached_property
    def squared_error(self) -> tuple[Boosting, int]:
        """Trees of squared error, which losses share, and how many the other instances want."""
        return self.stopped(squared_error_loss(self.y))

    def baseline(self, n_steps: int | None = None) -> BoostedPredictor:
        """Return the model of squared error. Trees that grew until they were stopped grow on."""
        trees, best = self.squared_error
        return self._with_trees(trees, best if n_steps is None else n_steps)

    def boosted(self, loss: LearnedLoss, n_steps: int | None) -> BoostedPredictor:
        """Return the trees of a loss: `n_steps`, or until other instances stop them."""
        if n_steps is None:
            return self._with_trees(*self.stopped(loss))
        return self._with_trees(self.sprout(loss), n_steps)

    def stopped(self, loss: LearnedLoss) -> tuple[Boosting, int]:
        """Return trees that the other instances stopped, if there are some, and the best round."""
        trees, n_steps = self.sprout(loss), self.learner.max_steps
        if not len(self.rest):
            return trees, n_steps
        rows = as_rows(take_rows(self.x, self.rest))
        watched = rows, self.start.margin(rows), loss.subset(self.rest)
        return trees, trees.run(n_steps, watched, self.learner.patience)

    def sprout(self, loss: LearnedLoss) -> Boosting:
        """Return trees without a round."""
        objective = BoostingObjective.of(loss.subset(self.index), self.start.margin(self.rows))
        estimator, seed = self.learner.estimator, self.learner.seed
        return self.learner.trees(estimator, seed, self.rows, objective)

    def _with_trees(self, trees: Boosting, n_steps: int) -> BoostedPredictor:
        trees.run(n_steps)
        parts = (trees.trees(n_steps),) if n_steps and trees.n_rounds else ()
        return replace(self.start, parts=parts, n_steps=n_steps)


class _Part(Residuals):
    """The trees of one mask, and corrections of their residuals."""

    @cached_property
    def trees(self) -> _Fold:
        learner: BoostingLearner = self.learner.base
        return _Fold(learner, self.x, self.y, self.mask)

    @cached_property
    def base(self) -> BoostedPredictor:
        """Trees that other instances stopped, or that are as many as inner folds want."""
        if not self.mask.all():
            return self.trees.baseline()
        rate = self.nested.learner.learning_rate / self.trees.learner.learning_rate
        n_steps = rate * float(np.mean([model.n_steps for model, _ in self.nested.models]))
        return self.trees.baseline(min(round(n_steps), self.trees.learner.max_steps))

    def trained(self, loss: LearnedLoss, n_steps: int | None) -> Predictor:
        if is_squared_error(loss):
            return self.trees.baseline(n_steps)
        if loss.family.uses_slopes:
            return self.corrected(loss, n_steps)
        return self.trees.boosted(loss, n_steps)

    def corrected(self, loss: LearnedLoss, n_steps: int | None) -> CorrectedPredictor:
        """Return the base with a linear correction, unless it is refuted, and then trees."""
        linear, rest = super().corrected(loss, None), self.trees.rest
        model: Predictor = self.base
        known, left = self.known, self.residuals
        moved = left - linear.shift(self.x)
        losses = [loss.value((self.y - of)[rest], rest).sum() for of in (left, moved) if len(rest)]
        is_refuted = bool(losses) and losses[1] > losses[0]
        if not (is_refuted or any(map(self.trees.learner.parameters.get, _CONSTRAINTS))):
            model, known, left = linear, None, moved
        fold = _Fold(self.nested.learner, self.x, left, self.mask, corrects=True)
        trees = fold.boosted(replace(loss, y=left), n_steps)
        return CorrectedPredictor(model, trees, linear.limit, known)
