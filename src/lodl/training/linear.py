"""Linear models trained on a learned loss with NumPy alone: `LinearLearner`."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from lodl._arrays import check_count
from lodl._threads import one_blas_thread
from lodl._typing import Array, Index, Masks
from lodl.losses import LearnedLoss, Parameters, is_squared_error
from lodl.losses._shared_slopes import SharedSlopes, are_apart, gathered
from lodl.training._features import Scaling, as_rows, check_masks, check_numbers, count_items
from lodl.training._learner import EarlyStopping, Learner, Predictor, file_in, unusable
from lodl.training._pulled import Pulled

__all__ = ["LinearLearner", "LinearPredictor"]

N_STEPS = 1000
"""The most steps of Adam."""

_FILE = "model.safetensors"
_RIDGES = (1e-6, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)  # shares of the variance
_RIDGE_GAIN = 0.01  # least share of the left-out squared error that more than the least must save
_EVERY = 5  # steps between two validation scores
_MOST_APART = 10  # steps, if hardly two instances share a decision
_LEAST_GAIN = 1e-3  # share of a validation score by which a better one must be lower
_BETA1, _BETA2, _TINY = 0.9, 0.999, 1e-12  # Adam
_BATCH_SIZE = 256  # instances per step
_ENOUGH = 2000  # instances whose loss stops a model
_MANY_BATCHES = 12  # about 3,000 instances: steps of one size do not get near the minimum
_FINE = 0.05  # of the learning rate, when models have stopped at it
_MEMORY = 0.95  # of the running mean of the weights, which counts if there are several batches
_KEPT = 2**25 - 2**16  # bytes: once freed, glibc keeps as much, and steps do not wait for memory
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
        if loss.family.can_be_rounded and not is_squared_error(loss) and n_steps != 0:
            trained = [(w, n_steps or taken) for w, taken in (p.pulled(loss) for p in known)]
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
    n, x, centred = len(rows), rows[:, :-1], targets - targets.mean(axis=0)
    value, vector = np.linalg.eigh(x.T @ x)
    turned, along = x @ vector, vector.T @ (x.T @ centred)
    errors = []
    for ridge in _RIDGES:
        inverse = 1 / (np.maximum(value, 0.0) + ridge * n)
        seen = np.minimum(1 / n + np.square(turned) @ inverse, 1 - 1e-9)
        residuals = centred - turned @ (along * inverse[:, np.newaxis])
        residuals /= (1 - seen)[:, np.newaxis]
        errors.append(float(np.vdot(residuals, residuals)))
    best = int(np.argmin(errors))
    ridge = _RIDGES[best if errors[best] < (1 - _RIDGE_GAIN) * errors[0] else 0]
    gram = rows.T @ rows
    gram[np.diag_indices(len(gram) - 1)] += ridge * n
    return np.asarray(np.linalg.solve(gram, rows.T @ targets)), ridge


class Descent:
    """Minimises the mean loss of several linear models at once, by Adam.

    Batches stay the same: parameters are large to copy. Losses are computed in single precision
    from errors relative to the labels, weights in double precision. If there are many batches,
    models that have stopped go on in small steps, and those that cannot stop slow down.
    """

    def __init__(self, data: Sequence[Standardised], loss: LearnedLoss, masks: Masks) -> None:
        self.family = loss.family
        n, mean = loss.n_instances, loss.y.mean(axis=0)
        self.spread = np.stack([part.labels.spread for part in data])
        centres = np.stack([part.labels.centre for part in data])
        base = np.tile(centres[0], loss.dim // centres.shape[1]).reshape(mean.shape)
        self.centre = centres - centres[0]
        offset = (base - loss.y).reshape(n, 1, -1).astype(_SINGLE)
        rows = np.stack([part.rows.astype(_SINGLE) for part in data])
        by_instance = rows.reshape(len(rows), n, -1, rows.shape[-1])
        phi = {name: values.astype(_SINGLE, copy=False) for name, values in loss.phi.items()}
        slope: Any = phi.get("slope")
        is_shared = isinstance(slope, SharedSlopes) and by_instance.shape[2] == 1
        # Steps are shares of each output's deviation, or equal if instances share no decisions:
        # Outputs that vary most would move too far before others do.
        common = np.sqrt(np.square(self.spread).mean(axis=1, keepdims=True))
        is_equal = _are_own(slope) and _have_one_unit(slope, self.spread[0])
        self.unit = (common if is_equal else self.spread) / self.spread
        self.is_apart = _are_own(slope) and isinstance(slope, SharedSlopes)
        is_quick = is_shared and len(slope.gradient) * rows.shape[-1] <= math.prod(slope.shape[1:])
        phi, gap = (phi, slope.gaps(offset)) if is_quick else (gathered(phi), None)
        # Adam does not depend on the unit of the loss, but its numbers must stay in range.
        unit = float(self.family.value(phi, offset).mean(dtype=np.float64)) or 1.0
        np.empty(_KEPT, dtype=np.uint8)
        self.batches = []
        for index in _divided(masks):
            n_trained = np.maximum(masks[:, index].sum(axis=1), 1)
            at = slice(None) if np.array_equal(index, np.arange(n)) else index  # without a copy
            of_batch = {name: values[at] for name, values in phi.items()}
            if gap is not None:  # maxima over decisions are quickest if these are the last axis
                of_batch["regret"] = np.asfortranarray(of_batch["regret"])
            self.batches.append(
                _Batch(
                    by_instance[:, at].reshape(len(rows), -1, rows.shape[-1]),
                    of_batch,
                    offset[at],
                    (masks[:, index].T / (n_trained * unit)).astype(_SINGLE),
                    [_place(is_out) for is_out in ~masks[:, index]],
                    None if gap is None else np.asfortranarray(gap[at]),
                )
            )

    @one_blas_thread()  # many small products: threads would cost more than they gain
    def run(
        self, start: Array, n_steps: int, stops: bool, is_free: Masks | None = None, pace: float = 1
    ) -> tuple[Array, npt.NDArray[np.int64]]:
        """Return the best weights (models, features, outputs) and steps, or the last."""
        at: Any
        rate, steps = (0.03, 10) if self.family.uses_slopes else (0.01, 100)
        rate, patience = 0.1 if self.family.is_smooth else rate, steps if stops else None
        if self.is_apart:  # known decisions say little far from the start; a running mean lags
            n_steps = min(n_steps, _MOST_APART * (1 + (len(self.batches) > 1)))
        every = 2 if self.is_apart else _EVERY
        stopping, best = EarlyStopping(patience, len(start), pace * _LEAST_GAIN), start.copy()
        w, averaged, batches = start, start, self.batches
        mean, square, is_large = 0 * w, 0 * w, len(batches) >= _MANY_BATCHES
        for step in range(n_steps + 1):
            running, batch = stopping.running, batches[step % len(batches)]
            at = None
            if step == n_steps or (patience is not None and step % every == 0):
                if patience is None:
                    scores = np.zeros(len(w))
                elif len(batches) > 1:
                    scores = self.scores(averaged, batches, running)
                else:
                    at = batch.at(self._unscaled(w, running))
                    values = batch.value(self.family, *at)
                    own = [values[i, k] for k, i in enumerate(batch.stopping)]
                    scores = np.array([v.sum(dtype=np.float64) / max(v.size, 1) for v in own])
                going_on = stopping.update(scores, step)
                best[running[stopping.is_better]] = averaged[stopping.is_better]
                if step == n_steps or not going_on.any():
                    break
                if not going_on.all():
                    batches, at = [batch.of(going_on) for batch in batches], None
                    batch = batches[step % len(batches)]
                    w, averaged = w[going_on], averaged[going_on]
                    mean, square = mean[going_on], square[going_on]
            at = at or batch.at(self._unscaled(w, stopping.running))
            gradient = batch.gradient(self.family, *at) * self.spread[stopping.running, np.newaxis]
            if is_free is not None:
                gradient *= is_free[stopping.running]
            mean = _BETA1 * mean + (1 - _BETA1) * gradient
            square = _BETA2 * square + (1 - _BETA2) * gradient**2
            bias = np.sqrt(1 - _BETA2 ** (step + 1)) / (1 - _BETA1 ** (step + 1))
            bias *= pace if stops or not is_large else 1 - step / n_steps
            bias *= self.unit[stopping.running, np.newaxis]
            w = w - rate * bias * mean / (np.sqrt(square) + _TINY)
            share = max(1 - _MEMORY, 1 / (step + 2))
            averaged = averaged + share * (w - averaged) if len(batches) > 1 else w
        if not (stops and is_large and pace == 1):
            return best, stopping.best_steps
        n_left = n_steps - int(stopping.best_steps.max())
        best, more = self.run(best, n_left, True, is_free, pace=_FINE)
        return best, stopping.best_steps + more

    def scores(self, w: Array, batches: "Sequence[_Batch]", running: Index) -> Array:
        """Return the mean loss of the instances that stop each running model."""
        totals, v, n_seen = np.zeros(len(running)), self._unscaled(w, running), 0 * running
        for batch in batches:
            if n_seen.min() >= _ENOUGH:  # at random, as batches are
                break
            for i, part in enumerate(batch.stopping_parts()):
                totals[i] += part.value(self.family, *part.at(v[i : i + 1])).sum(dtype=np.float64)
                n_seen[i] += len(part.offset)
        return totals / np.maximum(n_seen, 1)

    def _unscaled(self, w: Array, running: Index) -> Single:
        """Return weights in the unit of the labels, relative to the first model's centre."""
        v = w * self.spread[running, np.newaxis]
        v[:, -1] += self.centre[running]
        return v.astype(_SINGLE)


@dataclass(frozen=True, eq=False)
class _Batch:
    """The instances of one step. Slopes are multiplied by weights, not errors, if that is quick."""

    rows: Single  # features of each model, shape (models, rows, features)
    phi: Parameters
    offset: Single  # centre of the predictions less the label, shape (n, 1, D)
    share: Single  # weight of an instance in the gradient of each model, shape (n, models)
    stopping: Sequence[slice | Index]  # the instances that stop each model
    gap: Single | None  # s_k . offset of shared decisions, shape (n, 1, M)

    def of(self, models: npt.NDArray[np.bool_]) -> "_Batch":
        """Return the batch for some of the models."""
        stopping = [self.stopping[k] for k in np.flatnonzero(models).tolist()]
        return replace(self, rows=self.rows[models], share=self.share[:, models], stopping=stopping)

    def stopping_parts(self) -> "Iterator[_Batch]":
        """Yield the instances that stop each model, as a batch of one model."""
        n, _, n_features = len(self.offset), *self.rows.shape[1:]
        for k, at in enumerate(self.stopping):
            rows = self.rows[k].reshape(n, -1, n_features)[at].reshape(1, -1, n_features)
            phi = {name: values[at] for name, values in self.phi.items()}
            gap, share = None if self.gap is None else self.gap[at], self.share[at, k : k + 1]
            yield _Batch(rows, phi, self.offset[at], share, [], gap)

    def at(self, v: Single) -> tuple[Single, ...]:
        """Return weights, and the gaps s_k . d of their errors if that is quick."""
        if self.gap is None:
            return (v,)
        gradient, decision = self.phi["slope"].gradient, self.phi["slope"].decision
        by_feature = (v.reshape(-1, v.shape[-1]) @ gradient.T).reshape(*v.shape[:2], -1)
        # Costs of decisions (models, P, n), relative to `offset`: this order suits maxima over P.
        costs = np.matmul(by_feature.swapaxes(1, 2), self.rows.swapaxes(1, 2))
        flat, (own, place) = costs.reshape(len(v), -1), self._places
        taken = costs if decision is None else flat.take(place, axis=1)
        return v, (taken - flat.take(own, axis=1)).transpose(2, 0, 1) + self.gap

    def _errors(self, v: Single) -> Single:
        """Return errors, shape (n, models, D)."""
        outputs = np.matmul(self.rows, v).reshape(*self.share.shape[::-1], -1)
        return np.asarray(outputs.swapaxes(0, 1) + self.offset)

    def value(self, family: Any, v: Single, *gap: Single) -> Any:
        """Return losses, shape (n, models)."""
        d = self._errors(v)
        if not gap:
            return family.value(self.phi, d)
        return family.cost(self.phi, *gap) + (self.phi["w"][:, np.newaxis] * d * d).sum(-1)

    def gradient(self, family: Any, v: Single, *gap: Single) -> Any:
        """Return the derivative of the models' mean losses by their weights."""
        if not gap:
            return self._by_weight(family.gradient(self.phi, self._errors(v)))
        slope, (own, place), n = self.phi["slope"], self._places, len(self.offset)
        by_gap = family.by_gap(self.phi, *gap).transpose(1, 2, 0)
        total = by_gap.reshape(len(v), -1)
        if slope.decision is not None:
            total, taken = np.zeros((len(v), len(slope.gradient) * n), dtype=_SINGLE), total
            total[:, place.reshape(-1)] = taken
            total[:, own] = by_gap[:, :1]  # which comes first, and whose place padding has
        total[:, own] -= by_gap.sum(axis=1, keepdims=True)  # slopes are relative to it
        by_decision = np.matmul(total.reshape(len(v), -1, n), self._weighted).swapaxes(1, 2)
        by_weight = (by_decision.reshape(-1, len(slope.gradient)) @ slope.gradient).reshape(v.shape)
        if len(v) == 1 or v.shape[1] ** 2 > n:
            return by_weight + self._by_weight(2 * self.phi["w"][:, np.newaxis] * self._errors(v))
        bend, at_zero = self._squares
        return by_weight + at_zero + np.einsum("mfgj,mgj->mfj", bend, v)

    def _by_weight(self, by_output: Single) -> Any:
        by_row = by_output.swapaxes(0, 1).reshape(*self.rows.shape[:2], -1)
        return np.matmul(self._weighted.swapaxes(1, 2), by_row)

    @cached_property
    def _weighted(self) -> Single:
        """Features of each model times the weight of their instance in its gradient."""
        n_items = self.rows.shape[1] // len(self.share)
        return np.asarray(self.rows * np.repeat(self.share.T, n_items, axis=1)[..., np.newaxis])

    @cached_property
    def _squares(self) -> tuple[Single, Single]:
        """Derivatives of the squared error by two features' weights, and its gradient at 0."""
        pairs, w = self._weighted[..., np.newaxis] * self.rows[:, :, np.newaxis], 2 * self.phi["w"]
        bend = np.matmul(pairs.reshape(*self.rows.shape[:2], -1).swapaxes(1, 2), w)
        at_zero = np.matmul(self._weighted.swapaxes(1, 2), w * self.offset[:, 0])
        return bend.reshape(*at_zero.shape[:2], *at_zero.shape[1:]), at_zero

    @cached_property
    def _places(self) -> tuple[Index, ...]:
        """Positions of each instance's own and of all its decisions, one decision after another."""
        slope, n = self.phi["slope"], len(self.offset)
        numbers = (slope.own, slope.own if slope.decision is None else slope.decision)
        return tuple(n * number.T + np.arange(n) for number in numbers)


def _are_own(slope: Any) -> bool:
    """Return whether instances have decisions that hardly any other instance shares."""
    is_shared = isinstance(slope, SharedSlopes)
    return are_apart(slope.gradient, slope.own) if is_shared else slope is not None


def _have_one_unit(slope: Any, spread: Array) -> bool:
    """Return whether outputs that vary more do not matter less, as they would in another unit."""
    is_shared = isinstance(slope, SharedSlopes)
    slopes = slope.gradient - slope.gradient.mean(axis=0) if is_shared else slope
    size = np.sqrt(np.square(slopes).reshape(-1, slopes.shape[-1]).mean(axis=0))
    spreads = np.log(np.resize(spread, len(size))[size > 0])  # items share theirs
    return bool(np.std(spreads + np.log(size[size > 0])) > np.std(spreads) / 2)


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
