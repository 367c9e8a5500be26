"""Fit of the published directed quadratic form."""

import math

import numpy as np

from lodl._typing import Array
from lodl.fitting._minimise import minimise
from lodl.fitting._standardised import Standardised
from lodl.losses import DirectedQuadratic

_TOLERANCE = 1e-7  # single precision has no more
_MAX_ITERATIONS = 60  # by then the error is below that of the paper's 100 steps of Adam


def fit_directed_quadratic(family: DirectedQuadratic, d: Array, regret: Array) -> dict[str, Array]:
    r"""Minimises over the four factors, then adds the floor.

    The problem is not convex: descent from factors drawn at random, the same for every instance,
    ends near a local optimum. All products are one: with over- and under-predictions side by side,
    e = [d+, d-] of shape (K, 2 D), and the factors as one matrix M of shape (2 D, 2 k), row sign by
    column sign, e M holds each column's projection for both of its signs; a mask keeps the one in
    force.
    """
    data = Standardised.of(d, regret)
    dim, rank = family.parameter_shapes(d.shape[1])["L"][2:]
    e = np.hstack([np.maximum(data.d, 0.0), np.minimum(data.d, 0.0)]).astype(np.float32)
    regret32 = data.regret.astype(np.float32)
    is_over = data.d[:, :rank] >= 0
    in_force = np.hstack([is_over, ~is_over])

    def objective(parameters: Array) -> tuple[float, Array]:
        u = e @ parameters.astype(np.float32).reshape(2 * dim, 2 * rank)
        u *= in_force
        residual = np.einsum("kj,kj->k", u, u) - regret32
        u *= residual[:, np.newaxis]
        value = residual @ residual / (2 * len(residual))
        gradient = (e.T @ u).astype(np.float64)
        return float(value), gradient.ravel() * (2 / len(residual))

    solution = minimise(
        objective,
        _random_start(data, dim, rank).ravel(),
        tolerance=_TOLERANCE,
        max_iterations=_MAX_ITERATIONS,
    )
    factor = solution.reshape(2, dim, 2, rank).swapaxes(1, 2)
    floor = np.full(dim, family.min_weight * np.square(factor).sum(axis=-1).mean())
    return {"L": data.factor(factor), "floor": data.weights(floor)}


def _random_start(data: Standardised, dim: int, rank: int) -> Array:
    """Returns factors sized to repeat the mean regret, shape (2, D, 2, k)."""
    start = np.random.default_rng(0).standard_normal((2, dim, 2, rank))
    start *= data.is_perturbed[:, np.newaxis, np.newaxis]
    column = np.arange(rank)
    start[0, column, 1, column] = start[1, column, 0, column] = 0.0  # s_i = s_j where i = j
    return start * math.sqrt(data.typical_cost / (dim * rank))
