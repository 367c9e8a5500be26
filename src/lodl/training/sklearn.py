"""scikit-learn: any regressor or pipeline, trained on a learned loss by label shift.

learner = SklearnLearner(make_pipeline(StandardScaler(), Ridge()))
model = learner.train(x, loss)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from lodl._frames import take_rows
from lodl._typing import Array
from lodl._validation import check_count, require
from lodl.errors import InvalidInputError, ModelFolderError
from lodl.losses import LearnedLoss
from lodl.losses._squared_error_loss import is_squared_error
from lodl.training._features import as_rows, check_features, count_items, count_rows
from lodl.training._label_shift import interleaved_folds, shifted_targets
from lodl.training._remembered import Remembered
from lodl.training._saving import unusable, write_predictor

require("sklearn", extra="sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.multioutput import MultiOutputRegressor  # noqa: E402
from sklearn.utils import get_tags  # noqa: E402

__all__ = ["SklearnLearner", "SklearnPredictor"]

_FILE = "model.skops"
_N_ROUNDS = 2  # without validation instances: between the 1 and the 4 that did well


@dataclass(frozen=True, eq=False)
class SklearnLearner:
    """Train a regressor that minimises squared error on a learned loss, by shifting its labels.

    Neither a custom objective nor sample weights are needed: see `lodl.training._label_shift`. A
    squared error needs no shift, so 2-stage is a plain `fit`. One fit of the learner takes
    `n_folds + 1` fits of the estimator per round, and one more; those of the first round are shared
    by all losses of the same instances.

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
    _first: Remembered[Array] = field(default_factory=Remembered, init=False, repr=False)
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
        if is_squared_error(loss):
            return self._fit(x, loss.y, 0)

        def out_of_fold(targets: Array) -> Array:
            if targets is not loss.y:
                return self._out_of_fold(x, targets)
            return self._first.get(x, targets, lambda: self._out_of_fold(x, targets))

        rounds = shifted_targets(loss, out_of_fold)
        if x_validation is None or loss_validation is None:
            last = min(_N_ROUNDS, self.max_rounds) if n_steps is None else n_steps
            return self._fit(x, next(islice(rounds, last, None)), last)
        models = [
            self._fit(x, targets, k)
            for k, targets in enumerate(islice(rounds, self.max_rounds + 1))
        ]
        scores = [loss_validation.value(model.predict(x_validation)).mean() for model in models]
        return models[int(np.argmin(scores))]

    def _out_of_fold(self, x: Any, targets: Array) -> Array:
        p = np.empty(targets.shape)
        for part in interleaved_folds(len(p), self.n_folds, self.seed):
            rest = np.setdiff1d(np.arange(len(p)), part)
            model = self._fit(take_rows(x, rest), targets[rest], 0)
            p[part] = model.predict(take_rows(x, part))
        return p

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

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the regressor to a folder in the format of skops, which is not a pickle."""
        io = require("skops.io", extra="sklearn")
        content = {
            "label_shape": self.label_shape,
            "n_features": self.n_features,
            "n_steps": self.n_steps,
        }
        path = write_predictor(folder, "sklearn", content) / _FILE
        io.dump(self.model, path)
        nameless = [kind for kind in io.get_untrusted_types(file=path) if "<" in kind]
        if nameless:
            path.unlink()
            raise ModelFolderError(
                f"The estimator cannot be saved, because it holds {', '.join(nameless)}: what has "
                "no name in a module cannot be found again. Use a function or class of a module."
            )


def load(folder: Path, content: dict[str, Any], _: Any, trusted: Sequence[str]) -> SklearnPredictor:
    """Return the model in a folder; use `lodl.training.load_predictor`."""
    io = require("skops.io", extra="sklearn")
    path = folder / _FILE
    unknown = sorted(set(io.get_untrusted_types(file=path)) - set(trusted))
    if unknown:
        raise unusable(
            folder,
            f"it holds {', '.join(unknown)}, which a forged file could misuse to crash Python or "
            f"to run code. If you trust where it comes from, load it with `trusted={unknown}`",
        )
    model = io.load(path, trusted=list(trusted))
    shape = tuple(content["label_shape"])
    return SklearnPredictor(model, shape, content["n_features"], content["n_steps"])
