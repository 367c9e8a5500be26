r"""Gradient boosting on a learned loss, for every framework that takes gradients and Hessians.

A model is a constant, the mean label, plus trees. For a loss made of decisions, trees go on where
2-stage ends: such a loss says in which direction a prediction should move, hardly where it should
be, and trees that start from the mean label lost on paths and knapsacks. A loss that is fitted to
regrets is a kind of squared error around the label and starts from the mean, which was better for
orders under a budget (newsvendor).

What trees start from is *out of fold* on the training instances: a fitted model hardly errs on
those, so nothing would be left to learn. The squared error of the held-out folds also says how many
trees 2-stage should have. All this depends on features and labels only, not on the loss, and is
done once for all losses of the same instances.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from lodl._frames import take_rows
from lodl._typing import Array
from lodl._validation import check_count
from lodl.losses import LearnedLoss, squared_error_loss
from lodl.training._boosted import BoostedPredictor, Trees
from lodl.training._boosting_objective import BoostingObjective
from lodl.training._features import as_rows, check_features, count_items
from lodl.training._inner_folds import inner_folds
from lodl.training._remembered import Remembered

_DEFAULT_RATE = 0.3  # XGBoost's learning rate where none is given


class Stopping:
    """Watches the loss of held-out rows, from before the first round on.

    Args:
        x: Features, one row each.
        margin: Predictions of these rows before the first round, shape (rows, outputs).
        score: Returns their loss.
        patience: Rounds without a better loss after which boosting stops.
    """

    def __init__(
        self, x: Any, margin: Array, score: Callable[[Array], float], patience: int
    ) -> None:
        self.x, self.margin, self.score, self.patience = x, margin, score, patience
        self.best_score, self.best_round, self.round = score(margin), 0, 0

    def is_over(self, margin: Array) -> bool:
        """Look at the predictions after another round; return whether to stop."""
        self.round += 1
        now = self.score(margin)
        if now < self.best_score:
            self.best_score, self.best_round = now, self.round
        return self.round - self.best_round >= self.patience


@dataclass(frozen=True, eq=False)
class BoostingLearner(ABC):
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
    _starts: Remembered[tuple[BoostedPredictor, Array]] = field(
        default_factory=Remembered, init=False, repr=False
    )
    kind: ClassVar[str]
    stops_early = True
    takes_frames = True

    def __post_init__(self) -> None:
        check_count("n_folds", self.n_folds, minimum=2)

    @abstractmethod
    def boost(
        self,
        x: Any,
        margin: Array,
        objective: BoostingObjective,
        n_rounds: int | None,
        stopping: Stopping | None,
    ) -> Trees | None:
        """Return trees to be added to `margin`, or None if the best number of rounds is 0.

        Args:
            x: Features, one row each.
            margin: Predictions to start from, shape (rows, outputs).
            objective: What to minimise.
            n_rounds: The number of rounds; None is that of the estimator.
            stopping: When to stop.
        """

    @property
    def patience(self) -> int:
        """Rounds to wait for a better validation loss."""
        given: int | None = self.estimator.get_params().get("early_stopping_rounds")
        rate = self.estimator.learning_rate or _DEFAULT_RATE
        return given or round(min(max(3 / rate, 10), 50))

    def train(
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
            start, margin = self._starts.get(x, loss.y, lambda: self._two_stage(x, loss.y))
        else:
            start = self._mean_label(x, loss.y)
            margin = start.margin(as_rows(x))
        stopping = None
        if x_validation is not None and loss_validation is not None:
            held_out = check_features(
                x_validation, loss_validation.n_instances, n_features=start.n_features
            )
            rows, score = as_rows(held_out), _mean_loss(loss_validation)
            stopping = Stopping(rows, start.margin(rows), score, self.patience)
        trees = self.boost(as_rows(x), margin, BoostingObjective.of(loss), n_steps, stopping)
        return replace(
            start,
            parts=start.parts if trees is None else (*start.parts, trees),
            n_steps=0 if trees is None else trees.n_rounds,
        )

    def _mean_label(self, x: Any, y: Array) -> BoostedPredictor:
        n_items = count_items(x, y)
        centre = y.reshape(len(y) * (n_items or 1), -1).mean(axis=0)
        return BoostedPredictor(self.kind, centre, (), tuple(y.shape[1:]), x.shape[-1], 0)

    def _two_stage(self, x: Any, y: Array) -> tuple[BoostedPredictor, Array]:
        """Return 2-stage and its out-of-fold predictions, shape (rows, outputs)."""
        loss = squared_error_loss(y)
        p, n_steps = np.empty(y.shape), []
        for rest, part in inner_folds(len(y), self.n_folds, self.seed):
            held_out = take_rows(x, part)
            model = self.train(
                take_rows(x, rest),
                loss.subset(rest),
                x_validation=held_out,
                loss_validation=loss.subset(part),
            )
            p[part] = model.predict(held_out)
            n_steps.append(model.n_steps)
        model = self.train(x, loss, n_steps=round(float(np.mean(n_steps))))
        return model, p.reshape(-1, len(model.centre))


def _mean_loss(loss: LearnedLoss) -> Callable[[Array], float]:
    return lambda margin: float(loss.value(margin.reshape(loss.y.shape)).mean())
