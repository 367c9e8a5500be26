"""Fit of the convex directed quadratic form."""

import numpy as np

from lodl._typing import Array
from lodl.fitting._minimise import minimise
from lodl.fitting._nnls import solve_nnls
from lodl.fitting._standardised import Standardised
from lodl.fitting._weighted import directed_squares
from lodl.losses import ConvexDirectedQuadratic

_TOLERANCE = 1e-7  # single precision has no more
_MAX_ITERATIONS = 300
_HINGE_SHARE = 0.8  # of the cost, at the start; the rest is the weights'


def fit_convex_directed_quadratic(
    family: ConvexDirectedQuadratic, d: Array, regret: Array
) -> dict[str, Array]:
    r"""Minimises over hinges and weights together, then lifts weights to the floor.

    The loss is convex in the prediction, the fit is not convex in the hinges: the result is a local
    optimum. It starts from the best directed weights, made smaller, and hinges in random
    directions, the same for every instance.
    """
    data = Standardised.of(d, regret)
    shape = family.parameter_shapes(d.shape[1])["a"]
    n_hinge_parameters = shape[0] * shape[1]
    squares = directed_squares(data.d)
    d32, squares32, regret32 = (
        values.astype(np.float32) for values in (data.d, squares, data.regret)
    )

    def objective(parameters: Array) -> tuple[float, Array]:
        a, w = np.split(parameters.astype(np.float32), [n_hinge_parameters])
        hinge = np.maximum(d32 @ a.reshape(shape).T, 0.0)
        residual = np.einsum("kr,kr->k", hinge, hinge) + squares32 @ w - regret32
        hinge *= residual[:, np.newaxis]
        gradient = np.concatenate([2 * (hinge.T @ d32).ravel(), residual @ squares32])
        value = residual @ residual / (2 * len(residual))
        return float(value), gradient.astype(np.float64) / len(residual)

    hinges = np.random.default_rng(0).standard_normal(shape) * data.is_perturbed
    hinges *= np.sqrt(2 * _HINGE_SHARE * data.typical_cost / hinges.size)  # half are on
    weights = (1 - _HINGE_SHARE) * solve_nnls(squares, data.regret)
    solution = minimise(
        objective,
        np.concatenate([hinges.ravel(), weights]),
        lower=np.concatenate([np.full(n_hinge_parameters, -np.inf), np.zeros(len(weights))]),
        tolerance=_TOLERANCE,
        max_iterations=_MAX_ITERATIONS,
    )
    return _parameters(family, data, solution, shape)


def _parameters(
    family: ConvexDirectedQuadratic, data: Standardised, solution: Array, shape: tuple[int, ...]
) -> dict[str, Array]:
    split = shape[0] * shape[1]
    a, w = solution[:split].reshape(shape), solution[split:]
    mean_weight = w.mean() + np.square(a).sum(axis=0).mean() / 2
    w_plus, w_minus = np.split(np.maximum(w, family.min_weight * mean_weight), 2)
    return {
        "a": data.factor(a.T).T,
        "w_plus": data.weights(w_plus),
        "w_minus": data.weights(w_minus),
    }
