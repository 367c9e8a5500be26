"""scikit-learn: any regressor or pipeline, trained on a learned loss by label shift.

learner = SklearnLearner(make_pipeline(StandardScaler(), Ridge()))
model = learner.train(x, loss)
"""

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._frames import take_rows
from lodl._typing import Array
from lodl._validation import check_count, require
from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss
from lodl.losses._squared_error_loss import is_squared_error
from lodl.training._features import as_rows, check_features, count_items, count_rows
from lodl.training._label_shift import interleaved_folds, shifted_targets

require("sklearn", extra="sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.multioutput import MultiOutputRegressor  # noqa: E402
from sklearn.utils import get_tags  # noqa: E402

__all__ = ["SklearnLearner", "SklearnPredictor"]

_N_ROUNDS = 2  # without validation instances: between the 1 and the 4 that did well


@dataclass(frozen=True, eq=False)
class SklearnLearner:
    """Train a regressor that minimises squared error on a learned loss, by shifting its labels.

    Neither a custom objective nor sample weights are needed: see `lodl.training._label_shift`. A
    squared error needs no shift, so 2-stage is a plain `fit`. One fit of the learner takes
    `n_folds + 1` fits of the estimator per round, and one more.

    Attributes:
        estimator: The regressor or pipeline; it is cloned, never changed. One that takes a single
            output is fitted once per value of the label.
        max_rounds: The most rounds of shifting; validation losses choose among 0 to this number.
        n_folds: Folds for the out-of-fold predictions.
        seed: Random seed for the folds; that of the estimator is its own `random_state`.
    """

    estimator: Any
    max_rounds: int = 4
    n_folds: int = 5
    seed: int = 0
    takes_frames = True

    def __post_init__(self) -> None:
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise InvalidInputError(
                f"`estimator` must be a regressor with a `fit` method, got {self.estimator!r}."
            )
        check_count("max_rounds", self.max_rounds, minimum=0)
        check_count("n_folds", self.n_folds, minimum=2)

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        *,
        x_validation: Any = None,
        loss_validation: LearnedLoss | None = None,
        n_steps: int | None = None,
    ) -> "SklearnPredictor":
        x = check_features(x, loss.n_instances)

        def refit(targets: Array, index: npt.NDArray[np.intp]) -> Any:
            return self._fit(take_rows(x, index), targets[index], 0).predict

        if is_squared_error(loss):
            return self._fit(x, loss.y, 0)
        rounds = shifted_targets(
            loss, x, refit, interleaved_folds(count_rows(x), self.n_folds, self.seed)
        )
        if x_validation is None or loss_validation is None:
            last = min(_N_ROUNDS, self.max_rounds) if n_steps is None else n_steps
            return self._fit(x, next(islice(rounds, last, None)), last)
        models = [
            self._fit(x, targets, k)
            for k, targets in enumerate(islice(rounds, self.max_rounds + 1))
        ]
        scores = [loss_validation.value(model.predict(x_validation)).mean() for model in models]
        return models[int(np.argmin(scores))]

    def _fit(self, x: Any, targets: Array, n_steps: int) -> "SklearnPredictor":
        n_items = count_items(x, targets)
        rows = len(targets) * (n_items or 1)
        outputs = targets.reshape(rows, -1)
        model = clone(self.estimator)
        if outputs.shape[1] == 1:
            outputs = outputs[:, 0]
        elif not get_tags(model).target_tags.multi_output:
            model = MultiOutputRegressor(model)
        model.fit(as_rows(x), outputs)
        return SklearnPredictor(model, tuple(targets.shape[1:]), x.shape[-1], n_steps)


@dataclass(frozen=True, eq=False)
class SklearnPredictor:
    """A fitted regressor that predicts labels of any shape."""

    model: Any
    label_shape: tuple[int, ...]
    n_features: int
    n_steps: int

    def predict(self, x: Any) -> Array:
        x = check_features(x, n_features=self.n_features)
        outputs = np.asarray(self.model.predict(as_rows(x)), dtype=np.float64)
        return outputs.reshape(count_rows(x), *self.label_shape)
