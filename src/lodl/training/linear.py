"""Linear models trained on a learned loss with NumPy alone: `LinearLearner`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from lodl._arrays import check_count
from lodl._threads import one_blas_thread
from lodl._typing import Array, Index, Masks
from lodl.losses import DecisionFamily, LearnedLoss, Parameters, is_squared_error
from lodl.losses._shared_slopes import SharedSlopes
from lodl.training._early_stopping import EarlyStopping
from lodl.training._features import Scaling, as_rows, check_masks, check_numbers, count_items
from lodl.training._learner import Learner, Predictor, file_in, unusable
from lodl.training._pulled import Pulled, is_pulled

__all__ = ["LinearLearner", "LinearPredictor"]

N_STEPS = 1000
"""The most steps of Adam."""

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
    """A linear model: `constant + (x - centre) @ coefficients`."""

    kind: ClassVar[str] = "linear"
    coefficients: Array  # one row per feature, one column per output
    centre: Array  # mean of each feature
    constant: Array  # prediction at the centre, one number per output
    label_shape: tuple[int, ...]
    n_steps: int

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return len(self.coefficients)

    def predict(self, x: Any) -> Array:
        x = check_numbers(x, n_features=self.n_features)
        outputs = self.constant + (x - self.centre) @ self.coefficients
        return np.asarray(outputs.reshape(len(x), *self.label_shape))

    @classmethod
    def mean(cls, predictors: "Sequence[LinearPredictor]") -> "list[LinearPredictor]":
        """Return one model that predicts the mean."""
        first = predictors[0]
        constants = [p.constant + (first.centre - p.centre) @ p.coefficients for p in predictors]
        constant = np.mean(constants, axis=0)
        coefficients = np.mean([p.coefficients for p in predictors], axis=0)
        n_steps = round(float(np.mean([p.n_steps for p in predictors])))
        return [replace(first, coefficients=coefficients, constant=constant, n_steps=n_steps)]

    def save(self, folder: str | PathLike[str]) -> None:
        names = ("coefficients", "centre", "constant")
        arrays = {name: np.ascontiguousarray(getattr(self, name)) for name in names}
        save_file(arrays, self.write(folder) / _FILE)

    @classmethod
    def load(cls, folder: Path, **_: Any) -> "LinearPredictor":
        content = cls.read(folder)
        try:
            arrays = load_file(file_in(folder, _FILE))
        except SafetensorError as error:
            raise unusable(folder, f"its {_FILE} is damaged ({error})") from error
        shape = content["label_shape"]
        model = cls(**arrays, label_shape=shape, n_steps=content["n_steps"])
        n_features, n_outputs = model.coefficients.shape
        is_matched = model.centre.shape == (n_features,) and model.constant.shape == (n_outputs,)
        if not is_matched or math.prod(shape) % n_outputs:
            raise ValueError("its arrays do not fit each other")
        return model


class Standardised:
    """Features and a constant, and labels, in units of their deviation in a mask."""

    def __init__(self, x: Array, y: Array, mask: Masks, *, has_constant: bool = True) -> None:
        self.is_in = np.repeat(mask, len(x) // len(y))
        self.features = Scaling.of_features(x[self.is_in])
        self.labels = Scaling.of_features(y.reshape(len(x), -1)[self.is_in])
        if not has_constant:
            scalings = (self.features, self.labels)
            self.features, self.labels = (replace(s, centre=0 * s.centre) for s in scalings)
        self.rows = np.hstack([self.features.scaled(x), np.ones((len(x), 1))])

    def coefficients(self, weights: Array) -> tuple[Array, Array]:
        """Return the coefficients of the features, and the prediction at their centre."""
        slopes = weights[:-1] * self.labels.spread / self.features.spread[:, np.newaxis]
        return slopes, self.labels.centre + self.labels.spread * weights[-1]


class _Solved(Standardised):
    """Standardised data and their least-squares solution with the best ridge penalty."""

    def __init__(self, x: Array, y: Array, mask: Masks) -> None:
        super().__init__(x, y, mask)
        self.mask, targets = mask, self.labels.scaled(y.reshape(len(x), -1))
        self.weights, self.ridge = _least_squares(self.rows[self.is_in], targets[self.is_in])

    def pulled(self, loss: LearnedLoss) -> tuple[Array, int]:
        """Return the weights of a model on a convex loss, and the number of steps."""
        centre, spread = self.labels.centre, self.labels.spread
        slopes, constant, steps = Pulled(
            self.rows[self.is_in, :-1],
            loss.subset(np.flatnonzero(self.mask)),
            self.weights[:-1] * spread,
            centre + self.weights[-1] * spread,
            penalty=self.ridge,
        ).train()
        return np.vstack([slopes, constant - centre]) / spread, steps


@dataclass(frozen=True, eq=False)
class LinearLearner(Learner):
    """Train a linear model on a learned loss.

    Squared error is solved in closed form, with the ridge penalty whose left-out error is least.
    Convex losses fitted to regrets are minimised by L-BFGS, pulled towards that solution, other
    losses by Adam, starting from it, in batches of at most 256 instances. Features and labels are
    standardised by the instances that train the model.
    """

    n_steps: int = N_STEPS  #: The most steps of Adam, which a validation loss may stop earlier.

    def __post_init__(self) -> None:
        check_count("n_steps", self.n_steps, minimum=0)

    def prepare(self, x: Any, y: Array, masks: Masks | None = None) -> list[_Solved]:
        x = check_numbers(x, len(y))
        count_items(x, y)  # raises if items do not divide a label
        return [_Solved(as_rows(x), y, mask) for mask in check_masks(masks, len(y))]

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        masks: Masks | None = None,
        *,
        prepared: list[_Solved] | None = None,
        n_steps: int | None = None,
    ) -> list[LinearPredictor]:
        known = prepared or self.prepare(x, loss.y, masks)
        masks = check_masks(masks, loss.n_instances)
        trained = [(part.weights, 0) for part in known]
        if is_pulled(loss.family) and not is_squared_error(loss) and n_steps != 0:
            trained = [part.pulled(loss) for part in known]
            if n_steps is not None:
                trained = [(w, n_steps) for w, _ in trained]
        elif not is_squared_error(loss):
            stops = n_steps is None and not masks.all()
            most = self.n_steps if n_steps is None else n_steps
            start = np.stack([part.weights for part in known])
            weights, steps = Descent(known, loss, masks).run(start, most, stops=stops)
            trained = list(zip(weights, steps.tolist(), strict=True))
        models = []
        for part, (w, taken) in zip(known, trained, strict=True):
            slopes, constant = part.coefficients(w)
            centre = part.features.centre
            models.append(LinearPredictor(slopes, centre, constant, loss.label_shape, taken))
        return models


def _least_squares(rows: Array, targets: Array) -> tuple[Array, float]:
    """Return the solution with the ridge penalty of the least left-out error, and the penalty."""
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

    Batches stay the same, because parameters of losses are large to copy. Losses are computed in
    single precision from errors relative to the labels; weights are in double precision.
    """

    def __init__(self, data: Sequence[Standardised], loss: LearnedLoss, masks: Masks) -> None:
        is_smooth = isinstance(loss.family, DecisionFamily) and loss.family.is_smooth
        # Learning rate and patience, for standardised data: large steps overshoot kinks.
        self.rate, self.patience = (0.1, 25) if is_smooth else (0.01, 100)
        n, mean = loss.n_instances, loss.y.mean(axis=0)
        # Adam does not depend on the unit of the loss, but its numbers must stay in range.
        unit = float(loss.value(np.broadcast_to(mean, loss.y.shape)).mean()) or 1.0
        self.spread = np.stack([part.labels.spread for part in data])
        centres = np.stack([part.labels.centre for part in data])
        base = np.tile(centres[0], loss.dim // centres.shape[1]).reshape(mean.shape)
        self.centre = centres - centres[0]
        offset = (base - loss.y).reshape(n, 1, -1).astype(_SINGLE)
        rows = np.stack([part.rows.astype(_SINGLE) for part in data])
        by_instance = rows.reshape(len(rows), n, -1, rows.shape[-1])
        phi = {name: values.astype(_SINGLE, copy=False) for name, values in loss.phi.items()}
        kind = _Batch
        if isinstance(slope := phi.get("slope"), SharedSlopes):
            phi["slope"] = slope.gathered()
            if slope.decision is None and rows.shape[1] == n:
                kind = _PooledBatch
        self.n_stopping = np.maximum((~masks).sum(axis=1), 1)
        self.batches = []
        for index in _divided(masks):
            n_trained = np.maximum(masks[:, index].sum(axis=1), 1)
            whole = len(index) == n and bool((index == np.arange(n)).all())
            at = slice(None) if whole else index  # one batch in order needs no copy
            batch = kind(
                loss.family,
                by_instance[:, at].reshape(len(rows), -1, rows.shape[-1]),
                {name: values[at] for name, values in phi.items()},
                offset[at],
                (masks[:, index].T / (n_trained * unit)).astype(_SINGLE),
            )
            stopping = [batch.part(k, _place(is_out)) for k, is_out in enumerate(~masks[:, index])]
            self.batches.append(replace(batch, stopping=stopping))

    @one_blas_thread()  # many small products: threads would cost more than they gain
    def run(
        self, start: Array, n_steps: int, *, stops: bool, is_free: Masks | None = None
    ) -> tuple[Array, npt.NDArray[np.int64]]:
        """Return the best weights (models, features, outputs) and steps, or the last."""
        patience = self.patience if stops else None
        stopping, best = EarlyStopping(patience, len(start)), start.copy()
        w, averaged, batches = start, start, self.batches
        mean, square = np.zeros_like(w), np.zeros_like(w)
        for step in range(n_steps + 1):
            if step == n_steps or (stops and step % _EVERY == 0):
                running = stopping.running
                scores = self.scores(averaged, batches, running) if stops else np.zeros(len(w))
                going_on = stopping.update(scores, step)
                best[running[stopping.is_better]] = averaged[stopping.is_better]
                if step == n_steps or not going_on.any():
                    break
                if not going_on.all():
                    batches = [batch.of(going_on) for batch in batches]
                    w, averaged = w[going_on], averaged[going_on]
                    mean, square = mean[going_on], square[going_on]
            batch, running = batches[step % len(batches)], stopping.running
            by_weight = batch.gradient(self._unscaled(w, running))
            gradient = (by_weight * self.spread[running, np.newaxis]).astype(np.float64)
            if is_free is not None:
                gradient *= is_free[running]
            mean = _BETA1 * mean + (1 - _BETA1) * gradient
            square = _BETA2 * square + (1 - _BETA2) * gradient**2
            bias = np.sqrt(1 - _BETA2 ** (step + 1)) / (1 - _BETA1 ** (step + 1))
            w = w - self.rate * bias * mean / (np.sqrt(square) + _TINY)
            share = max(1 - _MEMORY, 1 / (step + 2))
            averaged = averaged + share * (w - averaged) if len(batches) > 1 else w
        return best, stopping.best_steps

    def scores(self, w: Array, batches: "Sequence[_Batch]", running: Index) -> Array:
        """Return the mean loss of the instances that stop each running model."""
        v = self._unscaled(w, running)
        totals = np.sum([batch.scores(v) for batch in batches], axis=0)
        return np.asarray(totals / self.n_stopping[running])

    def _unscaled(self, w: Array, running: Index) -> Single:
        """Return weights in the unit of the labels, relative to the first model's centre."""
        v = w * self.spread[running, np.newaxis]
        v[:, -1] += self.centre[running]
        return v.astype(_SINGLE)


@dataclass(frozen=True, eq=False)
class _Batch:
    """The instances of one step."""

    family: Any
    rows: Single  # features of each model, shape (models, rows, features)
    phi: Parameters
    offset: Single  # centre of the predictions less the label, shape (n, 1, D)
    share: Single  # weight of an instance in the gradient of each model, shape (n, models)
    stopping: "Sequence[_Batch]" = ()  # the instances that stop each model

    def of(self, models: npt.NDArray[np.bool_]) -> Self:
        """Return the batch for some of the models."""
        stopping = [self.stopping[k] for k in np.flatnonzero(models).tolist()]
        return replace(self, rows=self.rows[models], share=self.share[:, models], stopping=stopping)

    def gradient(self, v: Single) -> Single:
        """Return the derivative of the models' losses by their weights v."""
        by_output = self.family.gradient(self.phi, self.errors(v)) * self.share[:, :, np.newaxis]
        by_row = by_output.swapaxes(0, 1).reshape(len(v), self.rows.shape[1], -1)
        return np.asarray(np.matmul(self.rows.swapaxes(1, 2), by_row))

    def scores(self, v: Single) -> Array:
        """Return the sum of the losses of the instances that stop each model."""
        parts = enumerate(self.stopping)
        return np.array([part.values(v[k : k + 1]).sum(dtype=np.float64) for k, part in parts])

    def values(self, v: Single) -> Single:
        """Return the losses of all instances, shape (n, models)."""
        return np.asarray(self.family.value(self.phi, self.errors(v)))

    def errors(self, v: Single) -> Single:
        """Return predictions less labels, shape (n, models, D)."""
        outputs = np.matmul(self.rows, v).reshape(len(v), len(self.offset), -1)
        return np.asarray(np.add(outputs.swapaxes(0, 1), self.offset, order="C"))

    def part(self, model: int, at: slice | Index) -> Self:
        """Return the batch of some instances, for one model."""
        rows = self.rows[model].reshape(len(self.offset), -1, self.rows.shape[-1])[at]
        return replace(
            self,
            rows=rows.reshape(1, -1, rows.shape[-1]),
            phi={name: values[at] for name, values in self.phi.items()},
            offset=self.offset[at],
        )


class _PooledBatch(_Batch):
    """The instances of one step, if they share all decisions and each has one row of features.

    A linear model x W needs no product of its outputs with all decisions' derivatives G: few
    features x are multiplied by W G', which all instances share.

        G (x W - y) = x (W G') - G y
    """

    @cached_property
    def at_centre(self) -> Single:
        """Gaps of predictions at the centre, shape (n, 1, M)."""
        return np.asarray(self.phi["slope"].gaps(self.offset))

    def gradient(self, v: Single) -> Single:
        slope = self.phi["slope"]
        weights = self.family.by_gap(self.phi, self._gaps(v)) * self.share[:, :, np.newaxis]
        by_product = np.matmul(self.rows.swapaxes(1, 2), weights.swapaxes(0, 1))
        of_decisions = by_product.reshape(-1, by_product.shape[-1]) @ slope.gradient
        floor = 2 * self.phi["w"][:, np.newaxis] * self.errors(v) * self.share[:, :, np.newaxis]
        floor -= weights.sum(axis=-1)[..., np.newaxis] * slope.gradient[slope.own]
        rest = np.matmul(self.rows.swapaxes(1, 2), floor.swapaxes(0, 1))
        return np.asarray(of_decisions.reshape(v.shape) + rest)

    def values(self, v: Single) -> Single:
        d = self.errors(v)
        floor = (self.phi["w"][:, np.newaxis] * d * d).sum(axis=-1)
        return np.asarray(self.family.cost(self.phi, self._gaps(v)) + floor)

    def _gaps(self, v: Single) -> Single:
        """Return s_k . d of each decision, shape (n, models, P)."""
        slope = self.phi["slope"]
        by_decision = v.reshape(-1, v.shape[2]) @ slope.gradient.T
        products = np.matmul(self.rows, by_decision.reshape(*v.shape[:2], -1))
        return np.asarray(slope.less_own(products) + self.at_centre)


def _divided(masks: Masks) -> list[Index]:
    """Return the instances of each batch: an equal share of every fold, sorted by fold."""
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
