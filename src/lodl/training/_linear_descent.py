"""Adam for several linear models at once, each with instances of its own."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.losses import LearnedLoss
from lodl.training._scaling import Scaling

LEARNING_RATE, N_STEPS, PATIENCE = 0.01, 1000, 100
"""What suits standardised features and labels: a learning rate, the most steps, and patience."""

_EVERY = 5  # steps between two looks at the held-out loss
_BETA1, _BETA2, _TINY = 0.9, 0.999, 1e-12
_BATCH_SIZE = 256  # instances; fewer are one batch
_SINGLE = np.float32  # large losses are bound by memory: half the bytes, half the time
_MEMORY = 0.95  # of the running mean of the weights, which is what counts with several batches

Index = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Single = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some instances, those that a model holds out beside each other.

    Attributes:
        rows: Features, one row per instance or item.
        phi: The parameters of the losses.
        offset: Centre of the labels less the label, shape (n, 1, D).
        share: How much an instance counts for each model, shape (n, models).
        held_out: For each model, the instances that it does not see.
    """

    rows: Single
    phi: Mapping[str, Single]
    offset: Single
    share: Single
    held_out: tuple[slice, ...]


class Descent:
    """Lowers the mean loss of linear models, by the gradients that the loss's family has.

    Many instances are divided into batches once: parameters of losses are large, and batches that
    stay what they are need no copy in every step. Losses are computed in single precision, as
    errors that are relative to the labels, and weights are kept in double.

    Args:
        rows: Features of all instances, one row per instance or item.
        loss: The loss of all instances.
        is_trained: Which instances each model is trained on, shape (n, models). No instance is held
            out by two models.
        labels: What turns outputs into predictions.
        learning_rate: Learning rate of Adam.
    """

    def __init__(
        self,
        rows: Array,
        loss: LearnedLoss,
        is_trained: Mask,
        labels: Scaling,
        learning_rate: float,
    ) -> None:
        self.family, self.learning_rate = loss.family, learning_rate
        n, self.dim = loss.n_instances, loss.dim
        spread = np.broadcast_to(labels.spread, loss.label_shape).reshape(-1)
        self.spread = spread.astype(_SINGLE)
        mean = np.broadcast_to(loss.y.mean(axis=0), loss.y.shape)
        self.unit = float(loss.value(mean).mean()) or 1.0  # Adam should not see the objective's
        self.n_held_out = np.maximum((~is_trained).sum(axis=0), 1)
        offset = (labels.centre - loss.y).reshape(n, 1, self.dim).astype(_SINGLE)
        by_instance = rows.reshape(n, -1, rows.shape[-1]).astype(_SINGLE)
        phi = {name: values.astype(_SINGLE, copy=False) for name, values in loss.phi.items()}
        self.batches = []
        for index in _divided(is_trained):
            n_trained = np.maximum(is_trained[index].sum(axis=0), 1)
            whole = len(index) == n and (index == np.arange(n)).all()
            at = slice(None) if whole else index  # one batch in order needs no copy
            self.batches.append(
                Batch(
                    by_instance[at].reshape(-1, rows.shape[-1]),
                    {name: values[at] for name, values in phi.items()},
                    offset[at],
                    (is_trained[index] / (n_trained * self.unit)).astype(_SINGLE),
                    tuple(map(_stretch, ~is_trained[index].T)),
                )
            )

    def run(
        self, start: Array, n_steps: int, patience: int | None, is_free: Mask | None = None
    ) -> tuple[Array, Index]:
        """Return the best weights of each model and their step, or the last if not stopped.

        Args:
            start: Weights to start from, shape (models, features, outputs).
            n_steps: The most steps.
            patience: Steps without a better held-out loss after which a model stops; None never
                looks at it.
            is_free: Which weights may move, shape (features, outputs); None moves all.
        """
        best, best_steps = start.copy(), np.zeros(len(start), dtype=np.intp)
        best_scores = np.full(len(start), np.inf)
        running, w, kept = np.arange(len(start)), start, start
        mean, square = np.zeros_like(w), np.zeros_like(w)
        for step in range(n_steps + 1):
            if patience is not None and (step % _EVERY == 0 or step == n_steps):
                scores = self._held_out(kept, running)
                is_better = scores < best_scores[running]
                at = running[is_better]
                best[at], best_scores[at], best_steps[at] = kept[is_better], scores[is_better], step
                goes_on = step - best_steps[running] <= patience
                running, w, kept = running[goes_on], w[goes_on], kept[goes_on]
                mean, square = mean[goes_on], square[goes_on]
            if step == n_steps or not len(running):
                break
            gradient = self._gradient(w, self.batches[step % len(self.batches)], running)
            if is_free is not None:
                gradient *= is_free
            mean = _BETA1 * mean + (1 - _BETA1) * gradient
            square = _BETA2 * square + (1 - _BETA2) * gradient**2
            bias = np.sqrt(1 - _BETA2 ** (step + 1)) / (1 - _BETA1 ** (step + 1))
            w = w - self.learning_rate * bias * mean / (np.sqrt(square) + _TINY)
            is_noisy = len(self.batches) > 1
            kept = kept + max(1 - _MEMORY, 1 / (step + 2)) * (w - kept) if is_noisy else w
        if patience is None:
            return kept, np.full(len(w), n_steps)
        return best, best_steps

    def _errors(self, w: Array, batch: Batch, at: slice = slice(None)) -> Array:
        """Return predictions less labels of some instances of a batch, shape (n, models, D)."""
        offset = batch.offset[at]
        n_items = len(batch.rows) // len(batch.offset)
        rows = batch.rows.reshape(len(batch.offset), n_items, -1)[at].reshape(-1, w.shape[1])
        outputs = rows @ w.transpose(1, 0, 2).reshape(w.shape[1], -1).astype(_SINGLE)
        outputs = outputs.reshape(len(offset), n_items, len(w), w.shape[2]).swapaxes(1, 2)
        return np.asarray(offset + self.spread * outputs.reshape(len(offset), len(w), self.dim))

    def _held_out(self, w: Array, running: Index) -> Array:
        """Return the mean loss of the instances that each model holds out, 0 if there are none."""
        totals = np.zeros(len(running))
        for batch in self.batches:
            for i, model in enumerate(running):
                at = batch.held_out[model]
                if at.stop > at.start:
                    phi = {name: values[at] for name, values in batch.phi.items()}
                    losses = self.family.value(phi, self._errors(w[[i]], batch, at))
                    totals[i] += losses.sum(dtype=np.float64)
        return np.asarray(totals / self.n_held_out[running])

    def _gradient(self, w: Array, batch: Batch, running: Index) -> Array:
        """Return the derivative of the models' mean losses in a batch by their weights."""
        n, n_models = len(batch.offset), len(running)
        by_output = self.family.gradient(batch.phi, self._errors(w, batch)) * self.spread
        by_output *= batch.share[:, running, np.newaxis]
        n_outputs = n * self.dim // len(batch.rows)
        by_row = by_output.reshape(n, n_models, -1, n_outputs).swapaxes(1, 2)
        by_weight = batch.rows.T @ by_row.reshape(len(batch.rows), -1)
        by_weight = by_weight.reshape(-1, n_models, n_outputs).swapaxes(0, 1)
        return np.asarray(by_weight, dtype=np.float64)


def _divided(is_trained: Mask) -> list[Index]:
    """Return the instances of each batch, an equal part of every fold in each.

    Within a batch, instances that one model holds out lie beside each other.
    """
    fold = np.where(is_trained.all(axis=1), is_trained.shape[1], (~is_trained).argmax(axis=1))
    n_batches = -(-len(fold) // _BATCH_SIZE)
    order = (
        np.random.default_rng(0).permutation(len(fold)) if n_batches > 1 else np.arange(len(fold))
    )
    order = order[np.argsort(fold[order], kind="stable")]
    return [order[start::n_batches] for start in range(n_batches)]


def _stretch(is_in: Mask) -> slice:
    """Return where a stretch of instances begins and ends."""
    at = np.flatnonzero(is_in)
    return slice(int(at[0]), int(at[-1]) + 1) if len(at) else slice(0, 0)
