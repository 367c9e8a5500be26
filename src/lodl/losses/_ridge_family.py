r"""Fits that are drawn towards a squared error, so that few samples do not mislead them.

A family with p parameters repeats noise as soon as an instance has not many times p samples. So the
fit minimises, in units in which errors and regrets have size one,

    1/(2K) sum_k (f(d_k) - regret_k)^2
      + ridge D^2 / (200 K) |w - c|^2           weights per coordinate (and direction)
      + ridge b sqrt(D / (K + 4 D)) |A|^2       a factor or hinges, b a constant of the family

where c is the weight of the best plain squared error c |d|^2. The first penalty is that of a
Gaussian prior. The second one is the trace norm of the quadratic form, so it lowers the rank;
sqrt(D / K) is how fast the noise in its gradient fades. Both fade with the number of samples, so
one strength suits all of them.

**Why not stronger.** With 50 samples, thirty times the pull on weights repeats unseen samples
better, but models then decide as those of squared error do, which is the worst there is on top-1
choices. Noise of single instances averages out in a model that is trained on all of them; a pull
that all of them share does not. The strengths were chosen by validation decisions with 50 samples,
on one small data set of top-1 choices and two each of advertising and paths, one initialisation.
What they gain is in results/regularisation.md (speed/regularisation.py).
"""

import numpy as np

from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses._family import Family, check_min_weight
from lodl.losses._minimise import Objective
from lodl.losses._nnls import solve_nnls
from lodl.losses._standardised import Standardised
from lodl.oracle import Answers

_OF_WEIGHTS = 0.01


class RidgeFamily(Family):
    """A loss whose fit is drawn towards a squared error.

    Attributes:
        ridge: Strength of the regularisation; 0 is the plain least-squares fit, as published.
    """

    ridge: float

    def __post_init__(self) -> None:
        check_min_weight(self.min_weight)
        if not 0 <= self.ridge < np.inf:
            raise InvalidInputError(f"`ridge` must be a number of at least 0, got {self.ridge!r}.")

    def standardised(self, answers: Answers) -> Standardised:
        """Return answers in units of size one; as they are where nothing is penalised."""
        make = Standardised.of if self.ridge else Standardised.as_they_are
        return make(answers.d, answers.regret)

    def solve_weights(self, squares: Array, data: Standardised) -> Array:
        """Return the best weights of squared errors that stand in columns, shape (n,)."""
        if not self.ridge:
            return solve_nnls(squares, data.regret)
        towards = _tiled(_common_weight(data), squares.shape[1])
        penalty = self.ridge * _OF_WEIGHTS * data.d.shape[1] ** 2
        return solve_nnls(squares, data.regret, ridge=penalty, towards=towards)

    def penalised(
        self, objective: Objective, data: Standardised, *, n_factor: int, n_weights: int, b: float
    ) -> Objective:
        """Return an objective with both penalties; the very one given where `ridge` is 0.

        Args:
            objective: Half the mean squared residual of parameters (A, w) in one flat array.
            data: The samples.
            n_factor: Number of entries of A.
            n_weights: Number of weights, as many for each side.
            b: Strength of the penalty of A.
        """
        if not self.ridge:
            return objective
        n_samples, dim = data.d.shape
        towards = np.zeros(n_factor + n_weights)
        towards[n_factor:] = _tiled(_common_weight(data), n_weights)
        strength = np.full(n_factor + n_weights, self.ridge * _OF_WEIGHTS * dim**2 / n_samples)
        strength[:n_factor] = 2 * self.ridge * b * np.sqrt(dim / (n_samples + 4 * dim))

        def with_penalties(parameters: Array) -> tuple[float, Array]:
            value, gradient = objective(parameters)
            pull = strength * (parameters - towards)
            return value + float(pull @ (parameters - towards)) / 2, gradient + pull

        return with_penalties


def _common_weight(data: Standardised) -> Array:
    """Return the weight of the best plain squared error, 0 where nothing was moved, shape (D,)."""
    size = np.einsum("kd,kd->k", data.d, data.d)
    weight = max(float(size @ data.regret), 0.0) / (float(size @ size) or 1.0)
    return np.where(data.is_perturbed, weight, 0.0)


def _tiled(weight: Array, n_weights: int) -> Array:
    """Return the same weights for each side, shape (n_weights,)."""
    return np.tile(weight, n_weights // len(weight))
