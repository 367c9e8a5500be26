"""SPO+ for linear models and linear objectives, tuned on held-out decisions."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from lodl._typing import Array
from lodl_benchmarks.real._models import Fitted
from lodl_benchmarks.real._practice import Index, Outcome, folds
from lodl_benchmarks.real._split import Split

_RATES = (1e-3, 3e-3, 1e-2, 3e-2)  # Adam's, in deviations of the label
_N_EPOCHS = 10
_BATCH_SIZE = 32


def spo_plus(split: Split, estimator: Any) -> Outcome:
    """The loss of Elmachtoub and Grigas, minimised from the plain model on.

    With costs c (a gain is a negative cost), predictions c_hat and decisions z, its slope is

        2 (z(c) - z(2 c_hat - c)).

    Rate and number of epochs are those of the best decisions on a held-out fold; then the model is
    trained on all instances with them.
    """
    decide = _Decisions(split)
    best = decide(split.y_train, np.arange(len(split.y_train)))
    optimum = (best * split.y_train).sum(axis=1)
    train, held_out = folds(split)[-1]
    x = _with_ones(split.x_train)
    scores = {}
    for rate in _RATES:
        epochs = _descend(split, estimator, decide, best, train, rate)
        for epoch, w in enumerate(islice(epochs, _N_EPOCHS + 1)):
            z = decide(x[held_out] @ w, held_out)
            gap = optimum[held_out] - (z * split.y_train[held_out]).sum(axis=1)
            scores[rate, epoch] = abs(gap.mean())
    rate, n_epochs = min(scores, key=lambda key: scores[key])
    epochs = _descend(split, estimator, decide, best, np.arange(len(x)), rate)
    w = next(islice(epochs, n_epochs, None))
    return Outcome(
        _with_ones(split.x_test) @ w, decide.n_calls, f"rate {rate:g}, {n_epochs} epochs"
    )


def _descend(
    split: Split, estimator: Any, decide: "_Decisions", best: Array, rows: Index, rate: float
) -> Iterator[Array]:
    """Yield the weights of the plain model, and those after each epoch of Adam."""
    x, y, rng = _with_ones(split.x_train), split.y_train, np.random.default_rng(0)
    w = _weights(Fitted(estimator, split.x_train[rows], y[rows]).model, x.shape[-1] - 1)
    sign = 1.0 if split.problem.sense == "min" else -1.0
    rate = rate * float(y[rows].std())
    mean, square, step = np.zeros_like(w), np.zeros_like(w), 0
    yield w
    while True:
        for batch in np.array_split(rng.permutation(rows), max(1, len(rows) // _BATCH_SIZE)):
            z = decide(2 * (x[batch] @ w) - y[batch], batch)
            slope = 2 * sign * (best[batch] - z) / len(batch)
            axes = tuple(range(x.ndim - 1))
            gradient = np.tensordot(x[batch], slope, axes=(axes, axes))
            step += 1
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            size = np.sqrt(square / (1 - 0.999**step)) + 1e-9
            w = w - rate * mean / (1 - 0.9**step) / size
        yield w


class _Decisions:
    """Decisions for training instances, as arrays of the label's shape; calls are counted."""

    def __init__(self, split: Split) -> None:
        self._split, self.n_calls = split, 0

    def __call__(self, y_hats: Array, rows: Index) -> Array:
        self.n_calls += len(rows)
        problem, context = self._split.problem, self._split.context_train
        if context is None:
            return np.asarray(problem.solve_many(y_hats, None))
        return np.array([problem.solve(y, context[i]) for y, i in zip(y_hats, rows, strict=True)])


def _with_ones(x: Array) -> Array:
    return np.concatenate([x, np.ones((*x.shape[:-1], 1))], axis=-1)


def _weights(model: Any, n_features: int) -> Array:
    """Return the coefficients of a fitted linear model, the intercept last."""
    corners = np.asarray(model.predict(np.vstack([np.eye(n_features), np.zeros(n_features)])))
    return np.concatenate([corners[:-1] - corners[-1], corners[-1:]])
