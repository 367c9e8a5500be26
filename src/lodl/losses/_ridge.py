r"""`RidgeFamily`: fits that are shrunk towards a squared error, so that they can use few samples.

A family with p parameters repeats noise unless an instance has many times p samples. So the fit
minimises, in units in which errors and regrets have size one,

    1/(2K) sum_k (f(d_k) - regret_k)^2
      + ridge D^2 / (200 K) |w - c|^2           weights per coordinate (and direction)
      + ridge b sqrt(D / (K + 4 D)) |A|^2       a factor or hinges, b a constant of the family

where c is the weight of the best plain squared error c |d|^2. The first penalty corresponds to a
Gaussian prior. The second is the trace norm of the quadratic form, so it lowers the rank;
sqrt(D / K) is how fast the noise in its gradient fades. Both fade with the number of samples, so
one strength suits any number.

**Why not stronger.** With 50 samples, a penalty on weights thirty times as strong repeats unseen
samples better, but models then decide as if trained on squared error, which is the worst choice on
top-1 choices. Noise of single instances averages out in a model trained on all of them; a bias that
all of them share does not. The strengths were selected by validation decisions with 50 samples, on
one small data set of top-1 choices and two each of advertising and paths, one initialisation.
results/regularisation.md (speed/regularisation.py) has the gains.
"""

import numpy as np

from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses._family import Family, check_min_weight
from lodl.losses._least_squares import Objective, solve_nnls
from lodl.losses._standardised import Standardised
from lodl.oracle import Answers

_WEIGHT_PENALTY = 0.01  # strength of the first penalty: half of it is the 1 / 200 above


class RidgeFamily(Family):
    """A loss whose fit is shrunk towards a squared error.

    Attributes:
        ridge: Strength of the regularisation. 0 is the least-squares fit, as published.
    """

    ridge: float

    def __post_init__(self) -> None:
        check_min_weight(self.min_weight)
        if not 0 <= self.ridge < np.inf:
            raise InvalidInputError(f"`ridge` must be a number of at least 0, got {self.ridge!r}.")

    def standardised(self, answers: Answers) -> Standardised:
        """Return answers in units of size one, or unchanged if `ridge` is 0."""
        make = Standardised.of if self.ridge else Standardised.as_they_are
        return make(answers.d, answers.regret)

    def solve_weights(self, squares: Array, data: Standardised) -> Array:
        """Return the best weights of the squared errors in `squares`, shape (K, n)."""
        if not self.ridge:
            return solve_nnls(squares, data.regret)
        towards = _tiled(_common_weight(data), squares.shape[1])
        penalty = self.ridge * _WEIGHT_PENALTY * data.d.shape[1] ** 2
        return solve_nnls(squares, data.regret, ridge=penalty, towards=towards)

    def penalised(
        self, objective: Objective, data: Standardised, *, n_factor: int, n_weights: int, b: float
    ) -> Objective:
        """Add both penalties to an objective. If `ridge` is 0, return it unchanged.

        Args:
            objective: Half the mean squared residual of parameters (A, w) in one flat array.
            data: The samples.
            n_factor: Number of entries of A.
            n_weights: Number of weights: D, or 2 D if they depend on the sign of the error.
            b: Strength of the penalty of A.
        """
        if not self.ridge:
            return objective
        n_samples, dim = data.d.shape
        towards = np.zeros(n_factor + n_weights)
        towards[n_factor:] = _tiled(_common_weight(data), n_weights)
        strength = np.full(n_factor + n_weights, self.ridge * _WEIGHT_PENALTY * dim**2 / n_samples)
        strength[:n_factor] = 2 * self.ridge * b * np.sqrt(dim / (n_samples + 4 * dim))

        def with_penalties(parameters: Array) -> tuple[float, Array]:
            value, gradient = objective(parameters)
            pull = strength * (parameters - towards)
            return value + float(pull @ (parameters - towards)) / 2, gradient + pull

        return with_penalties


def _common_weight(data: Standardised) -> Array:
    """Return the weight of the best plain squared error, 0 for unperturbed coordinates: (D,)."""
    size = np.einsum("kd,kd->k", data.d, data.d)
    weight = max(float(size @ data.regret), 0.0) / (float(size @ size) or 1.0)
    return np.where(data.is_perturbed, weight, 0.0)


def _tiled(weight: Array, n_weights: int) -> Array:
    """Repeat weights of shape (D,) for each sign, shape (n_weights,)."""
    return np.tile(weight, n_weights // len(weight))
