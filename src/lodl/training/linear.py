"""Linear models trained on a learned loss with NumPy alone: `LinearLearner`.

learner = LinearLearner()
(model,) = learner.train(x, loss)
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from lodl.training._early_stopping import EarlyStopping
from lodl.training._features import (
    Index,
    Masks,
    Scaling,
    as_rows,
    check_masks,
    check_numbers,
    count_items,
)
from lodl.training._learner import Learner, Predictor, file_in, shape_in, unusable
from lodl.training._pulled import is_pulled, train_pulled

__all__ = ["LinearLearner", "LinearPredictor"]

LEARNING_RATE, N_STEPS, PATIENCE = 0.01, 1000, 100
"""Adam's learning rate, most steps and patience, for standardised features and labels."""

_FILE = "model.safetensors"
_RIDGES = (1e-6, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)  # shares of the variance
_RIDGE_GAIN = 0.01  # least share of the left-out squared error that more than the least must save
_EVERY = 5  # steps between two validation scores
_BETA1, _BETA2, _TINY = 0.9, 0.999, 1e-12  # Adam
_BATCH_SIZE = 256  # instances per step
_MEMORY = 0.95  # of the running mean of the weights, which counts if there are several batches
_SINGLE = np.float32  # large losses are bound by memory: half the bytes, half the time

Single = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LinearPredictor(Predictor):
    """A linear model: `constant + (x - centre) @ coefficients`.

    Attributes:
        coefficients: One row per feature, one column per output.
        centre: Mean of each feature.
        constant: Prediction at the centre, one number per output.
        label_shape: Shape of a label.
        n_steps: Steps of training.
    """

    kind: ClassVar[str] = "linear"
    coefficients: Array
    centre: Array
    constant: Array
    label_shape: tuple[int, ...]
    n_steps: int

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """Number of features."""
        return len(self.coefficients)

    def predict(self, x: Any) -> Array:
        x = check_numbers(x, n_features=self.n_features)
        outputs = self.constant + (x - self.centre) @ self.coefficients
        return np.asarray(outputs.reshape(len(x), *self.label_shape))

    @classmethod
    def mean(cls, predictors: "Sequence[LinearPredictor]") -> "list[LinearPredictor]":
        """Return one model that predicts the mean."""
        first = predictors[0]
        constants = [
            model.constant + (first.centre - model.centre) @ model.coefficients
            for model in predictors
        ]
        coefficients = np.mean([model.coefficients for model in predictors], axis=0)
        n_steps = round(float(np.mean([model.n_steps for model in predictors])))
        constant = np.mean(constants, axis=0)
        return [replace(first, coefficients=coefficients, constant=constant, n_steps=n_steps)]

    def save(self, folder: str | PathLike[str]) -> None:
        path = self.write(folder, {"label_shape": self.label_shape, "n_steps": self.n_steps})
        names = ("coefficients", "centre", "constant")
        save_file({name: np.ascontiguousarray(getattr(self, name)) for name in names}, path / _FILE)

    @classmethod
    def load(cls, folder: Path, **_: Any) -> "LinearPredictor":
        content = cls.read(folder)
        try:
            arrays = load_file(file_in(folder, _FILE))
        except SafetensorError as error:
            raise unusable(folder, f"its {_FILE} is damaged ({error})") from error
        shape, n_steps = shape_in(content), check_count("n_steps", content["n_steps"], minimum=0)
        model = cls(**arrays, label_shape=shape, n_steps=n_steps)
        n_features, n_outputs = model.coefficients.shape
        is_matched = model.centre.shape == (n_features,) and model.constant.shape == (n_outputs,)
        if not is_matched or math.prod(shape) % n_outputs:
            raise ValueError("its arrays do not fit each other")
        return model


@dataclass(frozen=True, eq=False)
class _Prepared:
    """Standardised features and the least-squares solution of each mask.

    Attributes:
        features: Scales of the features.
        labels: Scales of the labels.
        rows: Standardised features and a constant, shape (models, rows, features + 1). There is one
            row per instance or item.
        weights: Solution for squared error, shape (models, features + 1, outputs).
        ridges: Ridge penalty of each solution, as a share of the features' variance.
    """

    features: list[Scaling]
    labels: list[Scaling]
    rows: Array
    weights: Array
    ridges: list[float]


@dataclass(frozen=True, eq=False)
class LinearLearner(Learner):
    """Train a linear model on a learned loss.

    Squared error is solved in closed form, with the ridge penalty whose left-out error is least.
    Convex losses that were fitted to regrets are minimised by L-BFGS, pulled towards that solution
    (`lodl.training._pulled`). Any other loss is minimised by Adam, on all instances at once or in
    batches of 256, from that solution: predictions near it make sense even in directions that the
    loss does not see. Features and labels are standardised by the instances that train the model.

    Attributes:
        learning_rate: Learning rate of Adam.
        n_steps: The most steps.
        patience: Steps without a better validation loss after which Adam stops.
    """

    learning_rate: float = LEARNING_RATE
    n_steps: int = N_STEPS
    patience: int = PATIENCE

    def __post_init__(self) -> None:
        check_count("n_steps", self.n_steps, minimum=0)
        check_count("patience", self.patience)

    def prepare(self, x: Any, y: Array, masks: Masks | None = None) -> _Prepared:
        x = check_numbers(x, len(y))
        masks, n_items = check_masks(masks, len(y)), count_items(x, y)
        features = [Scaling.of_features(x[mask]) for mask in masks]
        labels = [Scaling.of_labels(y[mask], n_items) for mask in masks]
        rows = np.stack([with_ones(scale.scaled(as_rows(x))) for scale in features])
        weights, ridges = [], []
        for mask, own, scale in zip(masks, rows, labels, strict=True):
            is_in = np.repeat(mask, n_items or 1)
            targets = scale.scaled(y).reshape(len(own), -1)
            solution, ridge = _least_squares(own[is_in], targets[is_in])
            weights.append(solution)
            ridges.append(ridge)
        return _Prepared(features, labels, rows, np.stack(weights), ridges)

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        masks: Masks | None = None,
        *,
        prepared: _Prepared | None = None,
        n_steps: int | None = None,
    ) -> list[LinearPredictor]:
        known = prepared or self.prepare(x, loss.y, masks)
        masks = check_masks(masks, loss.n_instances)
        weights, steps = known.weights, np.zeros(len(masks), dtype=np.int64)
        if is_pulled(loss.family) and not is_squared_error(loss) and n_steps != 0:
            pulled = [_pulled(known, k, loss, mask) for k, mask in enumerate(masks)]
            weights = np.stack([trained for trained, _ in pulled])
            steps = np.array([taken if n_steps is None else n_steps for _, taken in pulled])
        elif not is_squared_error(loss):
            patience = self.patience if n_steps is None and not masks.all() else None
            descent = Descent(known.rows, loss, masks, known.labels, self.learning_rate)
            weights, steps = descent.run(
                weights, self.n_steps if n_steps is None else n_steps, patience
            )
        models = zip(weights, known.features, known.labels, steps.tolist(), strict=True)
        return [_predictor(*model, loss.label_shape) for model in models]


def _predictor(
    weights: Array, features: Scaling, labels: Scaling, n_steps: int, shape: tuple[int, ...]
) -> LinearPredictor:
    """Return a model of standardised features and labels, in the original units."""
    n_outputs = weights.shape[1]
    centre, spread = (part.reshape(-1)[:n_outputs] for part in (labels.centre, labels.spread))
    coefficients = weights[:-1] * spread / features.spread[:, np.newaxis]
    return LinearPredictor(
        coefficients, features.centre, centre + spread * weights[-1], shape, n_steps
    )


def with_ones(rows: Array) -> Array:
    """Return rows with a constant feature, the last."""
    return np.hstack([rows, np.ones((len(rows), 1))])


def _pulled(known: _Prepared, k: int, loss: LearnedLoss, mask: Masks) -> tuple[Array, int]:
    """Return the weights of model `k` on a convex loss, and the number of steps."""
    weights, labels = known.weights[k], known.labels[k]
    centre, spread = (
        part.reshape(-1)[: weights.shape[1]] for part in (labels.centre, labels.spread)
    )
    is_in = np.repeat(mask, len(known.rows[k]) // loss.n_instances)
    slopes, constant, steps = train_pulled(
        known.rows[k][is_in, :-1],
        loss.subset(np.flatnonzero(mask)),
        weights[:-1] * spread,
        centre + weights[-1] * spread,
        penalty=known.ridges[k],
    )
    return np.vstack([slopes, constant - centre]) / spread, steps


def _least_squares(rows: Array, targets: Array) -> tuple[Array, float]:
    """Return the solution for standardised features and a constant, and its ridge penalty.

    The penalty is the one whose left-out errors are least (each row left out in turn, in closed
    form), unless the least penalty is nearly as good.
    """
    n, x, mean = len(rows), rows[:, :-1], targets.mean(axis=0)
    moments = x.T @ (targets - mean)
    value, vector = np.linalg.eigh(x.T @ x)
    turned, along = x @ vector, vector.T @ moments
    errors = []
    for ridge in _RIDGES:
        inverse = 1 / (np.maximum(value, 0.0) + ridge * n)
        seen = np.minimum(1 / n + np.square(turned) @ inverse, 1 - 1e-9)
        residuals = targets - mean - turned @ (along * inverse[:, np.newaxis])
        errors.append(float(np.square(residuals / (1 - seen)[:, np.newaxis]).sum()))
    best = int(np.argmin(errors))
    ridge = _RIDGES[best if errors[best] < (1 - _RIDGE_GAIN) * errors[0] else 0]
    gram = rows.T @ rows
    gram[np.diag_indices(len(gram) - 1)] += ridge * n
    return np.asarray(np.linalg.solve(gram, rows.T @ targets)), ridge


class Descent:
    """Minimises the mean loss of several linear models at once, by Adam.

    Instances are divided into batches once: parameters of losses are large, and batches that stay
    the same need no copy in every step. Losses are computed in single precision from errors
    relative to the labels; weights are in double precision.

    Args:
        rows: Features of each model, shape (models, rows, features), one row per instance or item.
            The last feature is a constant 1.
        loss: The loss of all instances.
        masks: Which instances each model trains on, shape (models, n).
        labels: Scales that turn the outputs of each model into predictions.
        learning_rate: Learning rate of Adam.
    """

    def __init__(
        self,
        rows: Array,
        loss: LearnedLoss,
        masks: Masks,
        labels: Sequence[Scaling],
        learning_rate: float,
    ) -> None:
        self.family, self.learning_rate = loss.family, learning_rate
        n, mean = loss.n_instances, loss.y.mean(axis=0)
        # Adam does not depend on the unit of the loss, but its numbers must stay in range.
        unit = float(loss.value(np.broadcast_to(mean, loss.y.shape)).mean()) or 1.0
        n_outputs = loss.dim * n // rows.shape[1]
        self.spread = np.stack([scale.spread.reshape(-1)[:n_outputs] for scale in labels])
        centres = np.stack([scale.centre.reshape(-1)[:n_outputs] for scale in labels])
        base = np.tile(centres[0], loss.dim // n_outputs).reshape(mean.shape)
        self.centre = centres - centres[0]
        offset = (base - loss.y).reshape(n, 1, -1).astype(_SINGLE)
        by_instance = rows.reshape(len(rows), n, -1, rows.shape[-1]).astype(_SINGLE)
        phi = {name: values.astype(_SINGLE, copy=False) for name, values in loss.phi.items()}
        self.n_stopping = np.maximum((~masks).sum(axis=1), 1)
        self.batches = []
        for index in _divided(masks):
            n_trained = np.maximum(masks[:, index].sum(axis=1), 1)
            whole = len(index) == n and bool((index == np.arange(n)).all())
            at = slice(None) if whole else index  # one batch in order needs no copy
            self.batches.append(
                _Batch(
                    by_instance[:, at].reshape(len(rows), -1, rows.shape[-1]),
                    {name: values[at] for name, values in phi.items()},
                    offset[at],
                    (masks[:, index].T / (n_trained * unit)).astype(_SINGLE),
                    [_place(is_out) for is_out in ~masks[:, index]],
                )
            )

    def run(
        self, start: Array, n_steps: int, patience: int | None, is_free: Masks | None = None
    ) -> tuple[Array, npt.NDArray[np.int64]]:
        """Return the best weights of each model and their steps, the last if nothing stops it.

        Args:
            start: Weights to start from, shape (models, features, outputs).
            n_steps: The most steps.
            patience: Steps without a better validation loss after which a model stops. If None,
                nothing stops it.
            is_free: Which weights may move, in the shape of `start`. Defaults to all.
        """
        stopping, best = EarlyStopping(patience, len(start)), start.copy()
        w, averaged, batches = start, start, self.batches
        mean, square = np.zeros_like(w), np.zeros_like(w)
        for step in range(n_steps + 1):
            if step == n_steps or (patience is not None and step % _EVERY == 0):
                running, scores = stopping.running, np.zeros(len(w))
                if patience is not None:
                    scores = self.scores(averaged, batches, running)
                going_on = stopping.update(scores, step)
                best[running[stopping.is_better]] = averaged[stopping.is_better]
                if step == n_steps or not going_on.any():
                    break
                if not going_on.all():
                    batches = [batch.of(going_on) for batch in batches]
                    w, averaged = w[going_on], averaged[going_on]
                    mean, square = mean[going_on], square[going_on]
            gradient = self._gradient(w, batches[step % len(batches)], stopping.running)
            if is_free is not None:
                gradient *= is_free[stopping.running]
            mean = _BETA1 * mean + (1 - _BETA1) * gradient
            square = _BETA2 * square + (1 - _BETA2) * gradient**2
            bias = np.sqrt(1 - _BETA2 ** (step + 1)) / (1 - _BETA1 ** (step + 1))
            w = w - self.learning_rate * bias * mean / (np.sqrt(square) + _TINY)
            is_noisy = len(batches) > 1
            share = max(1 - _MEMORY, 1 / (step + 2))
            averaged = averaged + share * (w - averaged) if is_noisy else w
        return best, stopping.best_steps

    def scores(self, w: Array, batches: "Sequence[_Batch]", running: Index) -> Array:
        """Return the mean loss of the instances that stop each running model."""
        totals, v = np.zeros(len(running)), self._unscaled(w, running)
        for batch in batches:
            for i, at in enumerate(batch.stopping):
                d = batch.stopping_errors(v, i)
                if len(d):
                    phi = {name: values[at] for name, values in batch.phi.items()}
                    totals[i] += self.family.value(phi, d).sum(dtype=np.float64)
        return np.asarray(totals / self.n_stopping[running])

    def _gradient(self, w: Array, batch: "_Batch", running: Index) -> Array:
        """Return the derivative of the models' mean losses in a batch by their weights."""
        by_output = self.family.gradient(batch.phi, batch.errors(self._unscaled(w, running)))
        by_output = by_output * batch.share[:, :, np.newaxis]
        by_row = by_output.swapaxes(0, 1).reshape(len(w), batch.rows.shape[1], -1)
        by_weight = np.matmul(batch.rows.swapaxes(1, 2), by_row)
        return np.asarray(by_weight * self.spread[running, np.newaxis], dtype=np.float64)

    def _unscaled(self, w: Array, running: Index) -> Single:
        """Return weights in the unit of the labels, relative to the first model's centre."""
        v = w * self.spread[running, np.newaxis]
        v[:, -1] += self.centre[running]
        return v.astype(_SINGLE)


@dataclass(frozen=True, eq=False)
class _Batch:
    """The instances of one step.

    Attributes:
        rows: Features of each model, shape (models, rows, features).
        phi: Parameters of the losses.
        offset: Centre of the predictions less the label, shape (n, 1, D).
        share: Weight of an instance in the gradient of each model, shape (n, models).
        stopping: The instances that stop each model.
    """

    rows: Single
    phi: Mapping[str, Single]
    offset: Single
    share: Single
    stopping: Sequence[slice | Index]

    def of(self, models: npt.NDArray[np.bool_]) -> "_Batch":
        """Return the batch for some of the models."""
        stopping = [self.stopping[k] for k in np.flatnonzero(models).tolist()]
        return replace(self, rows=self.rows[models], share=self.share[:, models], stopping=stopping)

    def errors(self, v: Single) -> Array:
        """Return predictions less labels, shape (n, models, D)."""
        outputs = np.matmul(self.rows, v).reshape(*self.share.shape[::-1], -1)
        return np.asarray(np.add(outputs.swapaxes(0, 1), self.offset, order="C"))

    def stopping_errors(self, v: Single, model: int) -> Array:
        """Return predictions less labels of the instances that stop a model, shape (n, 1, D)."""
        at, n = self.stopping[model], len(self.offset)
        rows = self.rows[model].reshape(n, -1, self.rows.shape[-1])[at]
        outputs = rows.reshape(-1, rows.shape[-1]) @ v[model]
        return np.asarray(self.offset[at] + outputs.reshape(len(rows), 1, -1))


def _divided(masks: Masks) -> list[Index]:
    """Return the instances of each batch, with an equal share of every fold.

    Within a batch, the instances that stop a model are adjacent if they stop only one.
    """
    n = masks.shape[1]
    fold = np.where(masks.all(axis=0), len(masks), (~masks).argmax(axis=0))
    n_batches = -(-n // _BATCH_SIZE)
    order = np.random.default_rng(0).permutation(n) if n_batches > 1 else np.arange(n)
    order = order[np.argsort(fold[order], kind="stable")]
    return [order[start::n_batches] for start in range(n_batches)]


def _place(is_in: npt.NDArray[np.bool_]) -> slice | Index:
    """Return where booleans are True: a slice, which needs no copy, if they are adjacent."""
    at = np.flatnonzero(is_in)
    if not len(at):
        return slice(0, 0)
    return slice(int(at[0]), int(at[-1]) + 1) if at[-1] - at[0] + 1 == len(at) else at
