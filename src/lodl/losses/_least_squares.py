r"""Least-squares fits: samples in units of size one, ridges, non-negative weights, and L-BFGS.

A family with p parameters repeats noise unless an instance has many times p samples. So the fit of
a `RidgeFamily` minimises, in units in which errors and regrets have size one,

    1/(2K) sum_k (f(d_k) - regret_k)^2
      + ridge D^2 / (200 K) |w - c|^2           weights per coordinate (and direction)
      + ridge b sqrt(D / (K + 4 D)) |A|^2       a factor or hinges, b a constant of the family

where c is the weight of the best plain squared error c |d|^2. The first penalty corresponds to a
Gaussian prior, the second is the trace norm of the quadratic form, so it lowers the rank. Both fade
with the number of samples, so one strength suits any number.

The strengths were selected by validation decisions. Stronger penalties repeat unseen samples
better, but models then decide as if trained on squared error: noise of single instances averages
out in a model trained on all of them, a bias that they share does not. Instances are fitted one at
a time: batches are faster, but many instances would end in another local optimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lodl._arrays import check_count, check_number
from lodl._typing import Array, Flags
from lodl.errors import InvalidInputError
from lodl.losses._family import Family, error_scale, mse_weights, root_mean_square, with_typical
from lodl.oracle import Answers

Objective: TypeAlias = Callable[[Array], tuple[float, Array]]
"""Half the mean squared residual of standardised regrets, and its gradient."""

_WEIGHT_PENALTY = 0.01  # strength of the first penalty: half of it is the 1 / 200 above
_TOLERANCE = 1e-10  # violation of an optimality condition, columns and target having length 1
_MAX_EXCHANGES = 100  # far more than are ever needed; then Lawson and Hanson's method takes over
_SMALLEST, _LARGEST = 1e-75, 1e75  # sizes whose squares are ordinary numbers
_PATIENCE = 3  # exchanges without progress before variables move one by one


@dataclass(frozen=True, eq=False)
class Standardised:
    """Samples of one instance in units in which each coordinate and the regret has size one."""

    d: Array  # errors over their scale, shape (K, D)
    regret: Array  # regrets over their scale, shape (K,)
    d_scale: Array  # root mean square of each coordinate's error, shape (D,)
    regret_scale: float  # root mean square of the regrets, or 1 if that is zero

    @classmethod
    def of(cls, answers: Answers) -> Standardised:
        d_scale = error_scale(answers.d)
        regret_scale = float(root_mean_square(answers.regret)) or 1.0
        return cls(answers.d / d_scale, answers.regret / regret_scale, d_scale, regret_scale)

    @property
    def is_perturbed(self) -> Flags:
        """Whether any sample changes a coordinate, shape (D,)."""
        return np.asarray(self.d.any(axis=0))

    @property
    def typical_cost(self) -> float:
        """The mean regret, at least 0.01: a positive size for a first guess of the loss."""
        return max(float(self.regret.mean()), 1e-2)

    def weights(self, w: Array) -> Array:
        """Convert weights of squared errors, shape (..., D), to the units of the samples."""
        return w * self.regret_scale / self.d_scale**2

    def factor(self, factor: Array) -> Array:
        """Convert linear maps of the error, shape (..., D, k), to the units of the samples."""
        return factor * math.sqrt(self.regret_scale) / self.d_scale[:, np.newaxis]


class RidgeFamily(Family):
    """A loss fitted with a pull to squared error, whose weights are the `non_negative` ones."""

    ridge: float  # strength of the pull; 0 is the least-squares fit, as published
    rank: int | None = None  # columns of a factor; by default as many as can be used

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("ridge", self.ridge, at_least=0)
        if self.rank is not None:
            check_count("rank", self.rank)

    def n_columns(self, dim: int) -> int:
        """Return the number of columns of a factor that has at most one per coordinate."""
        if self.rank is not None and self.rank > dim:
            wanted = f"at most the number of values in a label ({dim})"
            got = f"{self.rank}. Use rank=None for full rank"
            raise InvalidInputError(f"`rank` must be {wanted}, got {got}.")
        return self.rank or dim

    def fallback(self, *, cost: float, scale: Array) -> dict[str, Array]:
        w, shapes = mse_weights(cost, scale), self.parameter_shapes(len(scale))
        return {name: w if name in self.non_negative else np.zeros(shapes[name]) for name in shapes}

    def fit_weights(self, answers: Answers, squares_of: Callable[[Array], Array]) -> Array:
        """Return the best weights of squared errors, lifted to the floor, shape (signs, D)."""
        unchanged = Standardised(answers.d, answers.regret, np.ones(answers.d.shape[1]), 1.0)
        data = Standardised.of(answers) if self.ridge else unchanged
        squares = squares_of(data.d)
        w = self.solve_weights(squares, data).reshape(-1, data.d.shape[1])
        unit = np.square(with_typical(np.sqrt(squares.mean(axis=0).reshape(w.shape).sum(axis=0))))
        return data.weights(np.maximum(w, self.min_weight * ((w * unit).mean() / unit)))

    def solve_weights(self, squares: Array, data: Standardised) -> Array:
        """Return the best weights of the squared errors in `squares`, shape (K, n)."""
        if not self.ridge:
            return solve_nnls(squares, data.regret)
        penalty = self.ridge * _WEIGHT_PENALTY * data.d.shape[1] ** 2
        towards = _plain_weights(data, squares.shape[1])
        return solve_nnls(squares, data.regret, ridge=penalty, towards=towards)

    def descend(
        self,
        objective: Objective,
        data: Standardised,
        factor: Array,
        weights: Array,
        *,
        b: float,
        tolerance: float,
        max_steps: int,
    ) -> tuple[Array, Array]:
        """Return the factor and the weights at which L-BFGS stops, both penalties added.

        `tolerance` is the least gain of a step, `b` the strength of the second penalty.
        """
        from scipy.optimize import Bounds, minimize  # slow to import

        (n_samples, dim), sizes = data.d.shape, [factor.size, weights.size]
        towards = np.concatenate([np.zeros(factor.size), _plain_weights(data, weights.size)])
        of_factor = 2 * self.ridge * b * np.sqrt(dim / (n_samples + 4 * dim))
        of_weights = self.ridge * _WEIGHT_PENALTY * dim**2 / n_samples
        strength = np.repeat([of_factor, of_weights], sizes)

        def with_penalties(parameters: Array) -> tuple[float, Array]:
            value, gradient = objective(parameters)
            pull = strength * (parameters - towards)
            return value + float(pull @ (parameters - towards)) / 2, gradient + pull

        options: Any = {"ftol": tolerance, "gtol": 1e-9, "maxiter": max_steps}
        options["maxfun"] = 2 * max_steps
        end = minimize(
            with_penalties if self.ridge else objective,
            np.concatenate([factor.ravel(), weights]),
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(np.repeat([-np.inf, 0.0], sizes), np.inf),
            options=options,
        ).x
        return end[: factor.size].reshape(factor.shape), end[factor.size :]


def _plain_weights(data: Standardised, n_weights: int) -> Array:
    """Return the weights of the best plain squared error, 0 for unperturbed coordinates."""
    size = np.einsum("kd,kd->k", data.d, data.d)
    weight = max(float(size @ data.regret), 0.0) / (float(size @ size) or 1.0)
    return np.tile(np.where(data.is_perturbed, weight, 0.0), n_weights // data.d.shape[1])


def solve_nnls(
    columns: Array, target: Array, *, ridge: float = 0.0, towards: Array | float = 0.0
) -> Array:
    r"""Return the optimum of a least-squares problem over non-negative weights.

        min_w |P w - t|^2 + ridge |w - towards|^2,   w >= 0

    Block principal pivoting on the Gram matrix (Judice and Pires, 1994; Kim and Park, 2011): guess
    which weights are positive, solve for them, and exchange all that break an optimality condition.
    If the Gram matrix is singular, a ridge of the size of its rounding error picks an optimum.

    SciPy's `nnls` may pick another optimum, and is slower for many weights with a ridge.
    """
    unit = float(columns.max(initial=0.0)) or 1.0
    if not _SMALLEST < unit < _LARGEST:  # its square would not be a number
        ridge, towards = ridge / unit / unit, towards * unit
        return solve_nnls(columns / unit, target, ridge=ridge, towards=towards) / unit
    gram, moments = columns.T @ columns, columns.T @ target + ridge * towards
    gram[np.diag_indices_from(gram)] += ridge
    return solve_nnls_of_gram(gram, moments, float(np.linalg.norm(target)) or 1.0)


def solve_nnls_of_gram(gram: Array, moments: Array, target_length: float) -> Array:
    """Return the w >= 0 that minimises w'Gw - 2 m'w, with G = P'P, m = P't and the length of t."""
    length = np.sqrt(gram.diagonal())
    length = np.where(length > 0, length, 1.0)
    gram = gram / np.outer(length, length)
    gram[np.diag_indices_from(gram)] += 100 * len(gram) * np.finfo(float).eps
    w = _pivot(gram, moments / (length * target_length))
    return w * target_length / length


def _pivot(gram: Array, moments: Array) -> Array:
    from scipy import linalg  # slow to import

    is_positive = moments > 0
    fewest, patience = len(moments) + 1, _PATIENCE
    for _ in range(_MAX_EXCHANGES):
        free, w = np.flatnonzero(is_positive), np.zeros_like(moments)
        if len(free):
            _, w[free], is_singular = linalg.lapack.dposv(gram[np.ix_(free, free)], moments[free])
            if is_singular:
                break
        is_wrong = np.where(is_positive, w, gram @ w - moments) < -_TOLERANCE
        n_wrong = int(is_wrong.sum())
        if n_wrong == 0:
            return np.maximum(w, 0.0)
        if n_wrong < fewest:
            fewest, patience = n_wrong, _PATIENCE
        elif patience > 0:
            patience -= 1
        else:  # Murty's rule: exchange only the last variable, which cannot cycle
            is_wrong[: np.flatnonzero(is_wrong)[-1]] = False
        is_positive = is_positive ^ is_wrong
    from scipy.optimize import nnls

    upper = linalg.cholesky(gram)  # the slower method of Lawson and Hanson always ends
    return np.asarray(nnls(upper, linalg.solve_triangular(upper, moments, trans=1))[0])
