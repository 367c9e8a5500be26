"""`Quadratic`: a positive semidefinite quadratic form of the error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lodl._typing import Array
from lodl.losses._family import Parameters, Tensor
from lodl.losses._least_squares import RidgeFamily, Standardised
from lodl.oracle import Answers

_TOLERANCE = 1e-8  # gain of a step; single precision resolves no less
_MAX_STEPS = 500
_FACTOR_SHARE = 0.8  # share of the cost that the factor starts with; c has the rest
_PENALTY = 1.0  # b in `lodl.losses._least_squares`, for the factor


@dataclass(frozen=True)
class Quadratic(RidgeFamily):
    r"""A learned positive semidefinite quadratic form (paper, section 4.2).

        f(d) = |L^T d|^2 + sum_i c_i d_i^2,   H = L L^T + diag(c)

    D * rank parameters, and the floor c. Use it when errors of several coordinates add up or
    cancel, and samples are many (at full rank a few times D (D + 1) / 2). It sees no signs.

    Example:
        >>> y = np.array([[3.0, 1.0]])
        >>> loss = lodl.learn_loss(lodl.domains.TopK(1), y, family=lodl.Quadratic(), n_samples=200)
        >>> loss.value([[4.0, 2.0]]) < loss.value([[2.0, 2.0]])  # errors that cancel cost less
        array([ True])
    """

    rank: int | None = None  #: Columns of L. Defaults to D, for which the fit is always optimal.
    #: The least c, as a share of the mean fitted diagonal of H with errors in units of their size,
    #: so that no gradient vanishes. 0 is the formula as published.
    min_weight: float = 1e-3
    ridge: float = 1.0  #: Strength of the pull towards a plain squared error. 0 is as published.
    is_convex = True
    non_negative = ("floor",)

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        return {"L": (dim, self.n_columns(dim)), "floor": (dim,)}

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        u = d @ phi["L"]
        return (u * u).sum(-1) + (phi["floor"][:, None] * d * d).sum(-1)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        u = d @ phi["L"]
        return 2 * (u @ phi["L"].swapaxes(-1, -2) + phi["floor"][:, None] * d)

    def value_and_gradient(self, phi: Parameters, d: Tensor) -> tuple[Tensor, Tensor]:
        u, weighted = d @ phi["L"], phi["floor"][:, None] * d
        value = (u * u).sum(-1) + (weighted * d).sum(-1)
        return value, 2 * (u @ phi["L"].swapaxes(-1, -2) + weighted)

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        diagonal = (phi["L"] * phi["L"]).sum(-1) + phi["floor"]
        return 2 * diagonal[:, None] + 0 * d

    def fit(self, answers: Answers) -> dict[str, Array]:
        r"""Minimise over the factor L of H = L L^T + diag(c), then lift c to the floor.

            min_L,c  1/(2K) sum_k (|L^T d_k|^2 + sum_i c_i d_ki^2 - regret_k)^2,   c >= 0

        plus the penalties of `lodl.losses._least_squares`. Without them c is 0: L alone can express
        any H. At full rank every second-order stationary point is the optimum of the convex problem
        over positive semidefinite H. Products in single precision halve the time.
        """
        data = Standardised.of(answers)
        dim, rank = self.parameter_shapes(data.d.shape[1])["L"]
        squares = np.square(data.d[:, : dim if self.ridge else 0])
        d32, squares32, regret32 = (x.astype(np.float32) for x in (data.d, squares, data.regret))

        def objective(parameters: Array) -> tuple[float, Array]:
            factor, c = np.split(parameters.astype(np.float32), [dim * rank])
            u = d32 @ factor.reshape(dim, rank)
            residual = np.einsum("kj,kj->k", u, u) + squares32 @ c - regret32
            u *= residual[:, np.newaxis]
            gradient = np.concatenate([(d32.T @ u).ravel(), residual @ squares32 / 2])
            value = residual @ residual / (2 * len(residual))
            return float(value), gradient.astype(np.float64) * (2 / len(residual))

        start, weights = _spectral_start(data, rank), np.empty(0)
        if self.ridge:
            start = np.sqrt(_FACTOR_SHARE) * start
            weights = (1 - _FACTOR_SHARE) * self.solve_weights(squares, data)
        factor, c = self.descend(
            objective, data, start, weights, b=_PENALTY, tolerance=_TOLERANCE, max_steps=_MAX_STEPS
        )
        c = c if self.ridge else np.zeros(dim)
        floor = np.maximum(c, self.min_weight * (np.square(factor).sum(axis=1) + c).mean())
        return {"L": data.factor(factor), "floor": data.weights(floor)}


def _spectral_start(data: Standardised, rank: int) -> Array:
    """Return the directions in which regret grows most, scaled to the mean regret."""
    moments = data.d.T @ (data.d * data.regret[:, np.newaxis])
    _, directions = np.linalg.eigh(moments)
    leading = directions[:, ::-1][:, :rank] * data.is_perturbed[:, np.newaxis]
    return leading * math.sqrt(data.typical_cost / rank)
