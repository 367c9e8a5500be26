"""A linear model, trained on a learned loss with NumPy alone.

learner = LinearLearner()
(model,) = learner.train(x, loss)
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from lodl._arrays import check_count
from lodl._typing import Array
from lodl.losses import LearnedLoss, is_squared_error
from lodl.training._features import check_masks, check_numbers, count_items
from lodl.training._learner import Learner, Predictor, file_in, unusable
from lodl.training._linear_descent import LEARNING_RATE, N_STEPS, PATIENCE, Descent
from lodl.training._scaling import Scaling

__all__ = ["LinearLearner", "LinearPredictor"]

_FILE = "model.safetensors"
_RIDGE = 1e-6  # of the features' variance: features that repeat each other have one solution

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LinearLearner(Learner):
    """Train a linear model on a learned loss.

    Squared error is solved in closed form. Any other loss is minimised by Adam, on all instances at
    once or in batches of 256, from that solution: near it predictions make sense, also where the
    loss does not see them. The losses are convex, so one start is enough. Features and labels are
    standardised.

    Attributes:
        learning_rate: Learning rate of Adam.
        n_steps: The most steps.
        patience: Steps without a better held-out loss after which a model stops.
    """

    learning_rate: float = LEARNING_RATE
    n_steps: int = N_STEPS
    patience: int = PATIENCE

    def __post_init__(self) -> None:
        check_count("n_steps", self.n_steps, minimum=0)
        check_count("patience", self.patience)

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        masks: Mask | None = None,
        *,
        prepared: Any = None,
        n_steps: int | None = None,
    ) -> "list[LinearPredictor]":
        x = check_numbers(x, loss.n_instances)
        stops = masks is not None and n_steps is None and not np.all(masks)
        is_trained = check_masks(masks, loss.n_instances).T
        patience = self.patience if stops else None
        steps = self.n_steps if n_steps is None else n_steps
        if (~is_trained).sum(axis=1).max() > 1:
            return [
                self._train(x, loss, is_trained[:, [k]], steps, patience)[0]
                for k in range(is_trained.shape[1])
            ]
        return self._train(x, loss, is_trained, steps, patience)

    def _train(
        self, x: Array, loss: LearnedLoss, is_trained: Mask, n_steps: int, patience: int | None
    ) -> "list[LinearPredictor]":
        """Return one model for each column of `is_trained`, which says what it is trained on."""
        n_items = count_items(x, loss.y)
        used = is_trained.any(axis=1)
        features = Scaling.of_features(x[used])
        labels = Scaling.of_labels(loss.y[used], n_items)
        rows = _with_ones(features.scaled(x))
        targets = labels.scaled(loss.y).reshape(len(rows), -1)
        row_is_trained = np.repeat(is_trained, n_items or 1, axis=0)
        weights = np.stack([_least_squares(rows[at], targets[at]) for at in row_is_trained.T])
        steps = np.zeros(len(weights), dtype=np.intp)
        if not is_squared_error(loss):
            descent = Descent(rows, loss, is_trained, labels, self.learning_rate)
            weights, steps = descent.run(weights, n_steps, patience)
        return [
            LinearPredictor(w, features, labels, int(n))
            for w, n in zip(weights, steps, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class LinearPredictor(Predictor):
    """A linear model of standardised features, in the labels' own unit.

    Attributes:
        weights: One row per feature and, last, the constant; one column per output.
        features: Mean and deviation of the features.
        labels: Mean and deviation of the labels.
        n_steps: Steps of training.
    """

    kind: ClassVar[str] = "linear"
    weights: Array
    features: Scaling
    labels: Scaling
    n_steps: int

    @classmethod
    def mean(cls, predictors: "Sequence[LinearPredictor]") -> "list[LinearPredictor]":
        """Return one model that predicts the mean of several, if they have the same scales."""
        first = predictors[0]
        if any(_scales(model) != _scales(first) for model in predictors):
            return list(predictors)
        weights = np.mean([model.weights for model in predictors], axis=0)
        n_steps = round(float(np.mean([model.n_steps for model in predictors])))
        return [LinearPredictor(weights, first.features, first.labels, n_steps)]

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """Number of features."""
        return len(self.weights) - 1

    @property
    def label_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Shape of a label."""
        return np.shape(self.labels.centre)

    def predict(self, x: Array) -> Array:
        x = check_numbers(x, n_features=self.n_features)
        outputs = _with_ones(self.features.scaled(x)) @ self.weights
        outputs = outputs.reshape(len(x), *np.shape(self.labels.centre))
        return np.asarray(self.labels.centre + self.labels.spread * outputs)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the model to a folder that `lodl.training.load_predictor` reads."""
        path = self.write(folder, {"n_steps": self.n_steps})
        arrays = {
            f"{scale}.{name}": np.ascontiguousarray(values)
            for scale in ("features", "labels")
            for name, values in asdict(getattr(self, scale)).items()
        }
        save_file({"weights": np.ascontiguousarray(self.weights), **arrays}, path / _FILE)

    @classmethod
    def load(cls, folder: Path, **_: Any) -> "LinearPredictor":
        try:
            arrays = load_file(file_in(folder, _FILE))
        except SafetensorError as error:
            raise unusable(folder, f"its {_FILE} is damaged ({error})") from error
        features, labels = (
            Scaling(arrays[f"{scale}.centre"], arrays[f"{scale}.spread"])
            for scale in ("features", "labels")
        )
        n_steps = check_count("n_steps", cls.read(folder)["n_steps"], minimum=0)
        model = cls(arrays["weights"], features, labels, n_steps)
        n_rows, n_outputs = model.weights.shape
        if features.centre.shape != (n_rows - 1,) or math.prod(model.label_shape) % n_outputs:
            raise ValueError("its arrays do not fit each other")
        return model


def _scales(model: LinearPredictor) -> list[bytes]:
    both = (model.features, model.labels)
    return [array.tobytes() for one in both for array in (one.centre, one.spread)]


def _with_ones(x: Array) -> Array:
    """Return the features of all instances and items as rows, with a constant feature."""
    rows = x.reshape(-1, x.shape[-1])
    return np.hstack([rows, np.ones((len(rows), 1))])


def _least_squares(rows: Array, targets: Array) -> Array:
    gram = rows.T @ rows
    gram[np.diag_indices(len(gram) - 1)] += _RIDGE * len(rows)
    return np.asarray(np.linalg.solve(gram, rows.T @ targets))
