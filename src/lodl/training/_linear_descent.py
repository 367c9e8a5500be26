"""Adam for several linear models at once, each with instances of its own."""

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.losses import LearnedLoss
from lodl.training._scaling import Scaling

_EVERY = 5  # steps between two looks at the held-out loss
_BETA1, _BETA2, _TINY = 0.9, 0.999, 1e-12


class Descent:
    """Lowers the mean loss of linear models, by the gradients that the loss's family has.

    Args:
        rows: Features of all instances, one row per instance or item.
        loss: The loss of all instances.
        is_trained: Which instances each model is trained on, shape (n, models); its held-out loss
            is that of the others.
        labels: What turns outputs into predictions.
        learning_rate: Learning rate of Adam.
    """

    def __init__(
        self,
        rows: Array,
        loss: LearnedLoss,
        is_trained: npt.NDArray[np.bool_],
        labels: Scaling,
        learning_rate: float,
    ) -> None:
        self.rows, self.loss, self.learning_rate = rows, loss, learning_rate
        self.n, self.dim = loss.n_instances, loss.dim
        self.spread = np.broadcast_to(labels.spread, loss.label_shape).reshape(-1)
        self.offset = (labels.centre - loss.y).reshape(self.n, 1, self.dim)
        mean = np.broadcast_to(loss.y.mean(axis=0), loss.y.shape)
        unit = float(loss.value(mean).mean()) or 1.0  # Adam should not see the objective's unit
        self.share = is_trained / (is_trained.sum(axis=0) * unit)
        self.share_held_out = ~is_trained / np.maximum((~is_trained).sum(axis=0), 1)

    def run(
        self, start: Array, n_steps: int, patience: int | None
    ) -> tuple[Array, npt.NDArray[np.intp]]:
        """Return the best weights of each model and their step, or the last if not stopped.

        Args:
            start: Weights to start from, shape (models, features, outputs).
            n_steps: The most steps.
            patience: Steps without a better held-out loss after which a model stops; None never
                looks at it.
        """
        best, best_steps = start.copy(), np.zeros(len(start), dtype=np.intp)
        best_scores = np.full(len(start), np.inf)
        running, w = np.arange(len(start)), start
        mean, square = np.zeros_like(w), np.zeros_like(w)
        for step in range(n_steps + 1):
            errors = self._errors(w)
            if patience is not None and (step % _EVERY == 0 or step == n_steps):
                value = self.loss.family.value(self.loss.phi, errors)
                scores = (value * self.share_held_out[:, running]).sum(axis=0)
                is_better = scores < best_scores[running]
                at = running[is_better]
                best[at], best_scores[at], best_steps[at] = w[is_better], scores[is_better], step
                goes_on = step - best_steps[running] <= patience
                running, w, errors = running[goes_on], w[goes_on], errors[:, goes_on]
                mean, square = mean[goes_on], square[goes_on]
            if step == n_steps or not len(running):
                break
            gradient = self._gradient(errors, running)
            mean = _BETA1 * mean + (1 - _BETA1) * gradient
            square = _BETA2 * square + (1 - _BETA2) * gradient**2
            bias = np.sqrt(1 - _BETA2 ** (step + 1)) / (1 - _BETA1 ** (step + 1))
            w = w - self.learning_rate * bias * mean / (np.sqrt(square) + _TINY)
        if patience is None:
            return w, np.full(len(w), n_steps)
        return best, best_steps

    def _errors(self, w: Array) -> Array:
        """Return predictions less labels, shape (n, models, D)."""
        outputs = self.rows @ w.transpose(1, 0, 2).reshape(w.shape[1], -1)
        outputs = outputs.reshape(self.n, -1, len(w), w.shape[2]).swapaxes(1, 2)
        return np.asarray(self.offset + self.spread * outputs.reshape(self.n, len(w), self.dim))

    def _gradient(self, errors: Array, running: npt.NDArray[np.intp]) -> Array:
        """Return the derivative of the models' mean losses by their weights."""
        n_models = len(running)
        by_output = self.loss.family.gradient(self.loss.phi, errors) * self.spread
        by_output *= self.share[:, running, np.newaxis]
        n_outputs = self.n * self.dim // len(self.rows)
        by_row = by_output.reshape(self.n, n_models, -1, n_outputs).swapaxes(1, 2)
        by_weight = self.rows.T @ by_row.reshape(len(self.rows), -1)
        return np.asarray(by_weight.reshape(-1, n_models, n_outputs).swapaxes(0, 1))
