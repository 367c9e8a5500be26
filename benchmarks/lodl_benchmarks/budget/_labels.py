"""Labels of a randomised trial: unbiased estimates of effects, of which one arm was seen.

With the response Y to arm A, the probability p_t of arm t, and any guess m_t(x) of its mean
response that was made without this customer,

    G_t = m_t(x) + 1(A = t) (Y - m_t(x)) / p_t,        y_t = G_t - G_0

has the true effect as its mean. With m = 0 this is inverse propensity; with a model of the response
it is doubly robust, and its noise is what the model does not explain. An objective that is linear
in the label therefore has the right mean, decision by decision, as the decision for a prediction
does not depend on this noise. Noise adds a constant to regret's level: the best decision for noisy
labels seems better than any can be.

A learned loss is convex, and noise that is larger than the effects blurs it until it is a squared
error again. `drawn_together` takes noise out, for a bias: labels move towards the predictions of a
model that has seen the other customers' labels.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl_benchmarks.budget._trial import Trial

_N_FOLDS = 2


class TLearner:
    """A model of the response to each arm; effects are differences (a T-learner)."""

    def __init__(self, new_model: Callable[[], Any], trial: Trial) -> None:
        self.models = [
            new_model().fit(trial.x[trial.arm == arm], trial.response[trial.arm == arm])
            for arm in range(len(trial.share))
        ]

    def responses(self, x: Array) -> Array:
        """Return the predicted response to each arm, shape (n, T + 1)."""
        return np.column_stack([model.predict(x) for model in self.models])

    def predict(self, x: Array) -> Array:
        """Return predicted effects, shape (n, T)."""
        responses = self.responses(x)
        return np.asarray(responses[:, 1:] - responses[:, :1])


def inverse_propensity(trial: Trial, guess: Array | float = 0.0) -> Array:
    """Return unbiased labels (n, T), given a guess of the response to each arm (n, T + 1)."""
    seen = trial.arm[:, np.newaxis] == np.arange(len(trial.share))
    response = guess + seen * (trial.response[:, np.newaxis] - guess) / trial.share
    return np.asarray(response[:, 1:] - response[:, :1])


def doubly_robust(trial: Trial, new_model: Callable[[], Any], seed: int = 0) -> Array:
    """Return unbiased labels (n, T) whose guesses come from a T-learner of the other fold."""
    guess = np.empty((len(trial.x), len(trial.share)))
    for is_in in _folds(len(trial.x), seed):
        others = Trial(trial.x[~is_in], trial.arm[~is_in], trial.response[~is_in], trial.share)
        guess[is_in] = TLearner(new_model, others).responses(trial.x[is_in])
    return inverse_propensity(trial, guess)


def drawn_together(
    x: Array, y: Array, new_model: Callable[[], Any], way: float = 1.0, seed: int = 1
) -> Array:
    """Return labels moved a part of the way to predictions from the labels of the other fold."""
    drawn = (1 - way) * y
    for is_in in _folds(len(x), seed):
        for treatment, labels in enumerate(y.T):
            model = new_model().fit(x[~is_in], labels[~is_in])
            drawn[is_in, treatment] += way * model.predict(x[is_in])
    return drawn


def _folds(n: int, seed: int) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield the customers of each random fold."""
    fold = np.random.default_rng(seed).integers(_N_FOLDS, size=n)
    for number in range(_N_FOLDS):
        yield fold == number
