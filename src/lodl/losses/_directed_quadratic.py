"""`DirectedQuadratic`: the paper's quadratic form whose factor depends on the errors' signs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lodl._typing import Array
from lodl.losses._family import Parameters, Tensor
from lodl.losses._least_squares import RidgeFamily, Standardised
from lodl.oracle import Answers

_TOLERANCE = 1e-7  # gain of a step; single precision resolves no less
_MAX_STEPS = 60  # enough for a lower error than the paper's 100 steps of Adam


@dataclass(frozen=True)
class DirectedQuadratic(RidgeFamily):
    r"""A quadratic form with a factor per pair of signs, as published (paper, section 4.2).

        f(d) = sum_j (sum_i L_ij^{s_i s_j} d_i)^2 + sum_i c_i d_i^2,   s_i = + if d_i >= 0, else -

    4 D * rank parameters, and the floor c. Use it to repeat the paper's tables, and
    `DirectedWeightedMAE` for everything else: **as published it is neither convex nor
    continuous**. The whole column j switches where d_j changes sign, so the value jumps. If
    rank < D, only the signs of the first `rank` coordinates switch a column.

    Example:
        >>> y, family = np.array([[3.0, 1.0]]), lodl.DirectedQuadratic()
        >>> loss = lodl.learn_loss(lodl.domains.TopK(1), y, family=family, n_samples=200)
        >>> loss.value([[4.0, 0.0]]) < loss.value([[2.0, 2.0]])  # the first item is better anyway
        array([ True])
    """

    rank: int | None = None  #: Number of columns, at most D. Defaults to D.
    #: c as a share of the mean fitted weight of a coordinate, averaged over the signs, with errors
    #: in units of their size. 0 is the formula as published.
    min_weight: float = 1e-3
    ridge = 0.0  # no setting: the fit as published
    is_convex = False
    non_negative = ("floor",)

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes. `L[a, b]` is L^{s_i s_j} with s_i = + for a = 0, s_j = + for b = 0."""
        return {"L": (2, 2, dim, self.n_columns(dim)), "floor": (dim,)}

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        u = _project(phi["L"], d)
        return (u * u).sum(-1) + (phi["floor"][:, None] * d * d).sum(-1)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        spread = _spread(phi["L"], d, _project(phi["L"], d))
        return 2 * (spread + phi["floor"][:, None] * d)

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        factor = phi["L"]
        ones = 0 * d[..., : factor.shape[-1]] + 1
        return 2 * (_spread(factor * factor, d, ones) + phi["floor"][:, None])

    def fit(self, answers: Answers) -> dict[str, Array]:
        r"""Minimise over the four factors, then add the floor.

        The problem is not convex: descent from random factors ends near a local optimum. With
        e = [d+, d-] of shape (K, 2 D) and the factors as a matrix M of shape (2 D, 2 k), row sign
        by column sign, e M is each column's projection for both signs; a mask selects the actual.
        """
        data = Standardised.of(answers)
        dim, rank = self.parameter_shapes(data.d.shape[1])["L"][2:]
        e = np.hstack([np.maximum(data.d, 0.0), np.minimum(data.d, 0.0)]).astype(np.float32)
        regret32 = data.regret.astype(np.float32)
        is_over = data.d[:, :rank] >= 0
        is_actual = np.hstack([is_over, ~is_over])

        def objective(parameters: Array) -> tuple[float, Array]:
            u = e @ parameters.astype(np.float32).reshape(2 * dim, 2 * rank)
            u *= is_actual
            residual = np.einsum("kj,kj->k", u, u) - regret32
            u *= residual[:, np.newaxis]
            value = residual @ residual / (2 * len(residual))
            gradient = (e.T @ u).astype(np.float64)
            return float(value), gradient.ravel() * (2 / len(residual))

        start, weights = _random_start(data, dim, rank), np.empty(0)
        solution, _ = self.descend(
            objective, data, start, weights, b=0.0, tolerance=_TOLERANCE, max_steps=_MAX_STEPS
        )
        factor = solution.swapaxes(1, 2)
        floor = np.full(dim, self.min_weight * np.square(factor).sum(axis=-1).mean())
        return {"L": data.factor(factor), "floor": data.weights(floor)}


def _project(factor: Tensor, d: Tensor) -> Tensor:
    """Return sum_i L_ij^{s_i s_j} d_i, shape (n, m, k)."""
    over, under = d.clip(min=0), d.clip(max=0)
    is_over = d[..., : factor.shape[-1]] >= 0
    if_over = over @ factor[:, 0, 0] + under @ factor[:, 1, 0]
    if_under = over @ factor[:, 0, 1] + under @ factor[:, 1, 1]
    return is_over * if_over + ~is_over * if_under


def _spread(factor: Tensor, d: Tensor, u: Tensor) -> Tensor:
    """Return sum_j L_ij^{s_i s_j} u_j, shape (n, m, D)."""
    transposed = factor.swapaxes(-1, -2)
    is_over = d >= 0
    over, under = is_over[..., : u.shape[-1]] * u, ~is_over[..., : u.shape[-1]] * u
    if_over = over @ transposed[:, 0, 0] + under @ transposed[:, 0, 1]
    if_under = over @ transposed[:, 1, 0] + under @ transposed[:, 1, 1]
    return is_over * if_over + ~is_over * if_under


def _random_start(data: Standardised, dim: int, rank: int) -> Array:
    """Return random factors scaled to the mean regret, shape (2, D, 2, k)."""
    start = np.random.default_rng(0).standard_normal((2, dim, 2, rank))
    start *= data.is_perturbed[:, np.newaxis, np.newaxis]
    column = np.arange(rank)
    start[0, column, 1, column] = start[1, column, 0, column] = 0.0  # s_i = s_j if i = j
    return start * math.sqrt(data.typical_cost / (dim * rank))
