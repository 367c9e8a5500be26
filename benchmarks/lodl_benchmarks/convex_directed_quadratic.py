"""`ConvexDirectedQuadratic`: squared hinges along learned directions, and a directed diagonal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lodl._typing import Array
from lodl.losses._family import Parameters, Tensor
from lodl.losses._least_squares import RidgeFamily, Standardised
from lodl.losses._weighted_mse import directed_squares, directed_weights
from lodl.oracle import Answers

_TOLERANCE = 1e-7  # gain of a step; single precision resolves no less
_MAX_STEPS = 300
_HINGE_SHARE = 0.8  # share of the cost that the hinges start with; the weights have the rest
_PENALTY = 0.3  # b in `lodl.losses._least_squares`, for the hinges


@dataclass(frozen=True)
class ConvexDirectedQuadratic(RidgeFamily):
    r"""Squared hinges along learned directions plus a directed diagonal.

        f(d) = sum_r max(a_r . d, 0)^2 + sum_i [ w+_i max(d_i, 0)^2 + w-_i max(-d_i, 0)^2 ],  w >= 0

    D * rank + 2 D parameters. Convex, smooth and zero at the label for all parameters. Use it when
    direction matters *and* errors of several coordinates add up or cancel. It contains
    `WeightedMSE` and `DirectedWeightedMSE` (no hinge), and `Quadratic` (two opposite hinges for
    each column of L).

    Example:
        >>> y, family = np.array([[3.0, 1.0]]), ConvexDirectedQuadratic()
        >>> loss = lodl.learn_loss(lodl.domains.TopK(1), y, family=family, n_samples=200)
        >>> loss.value([[4.0, 2.0]]) < loss.value([[2.0, 2.0]])  # errors that cancel cost less
        array([ True])
    """

    rank: int | None = 4  #: Number of hinges. None is 2 D, enough for every `Quadratic`.
    #: The least weight of the diagonal, as a share of the mean fitted weight of a coordinate,
    #: hinges included, with errors in units of their size.
    min_weight: float = 1e-3
    ridge: float = 1.0  #: Strength of the pull of the fit towards a plain squared error.
    is_convex = True
    non_negative = ("w_plus", "w_minus")

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        n_hinges = 2 * dim if self.rank is None else self.rank
        return {"a": (n_hinges, dim), "w_plus": (dim,), "w_minus": (dim,)}

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        hinge = (d @ phi["a"].swapaxes(-1, -2)).clip(min=0)
        return (hinge * hinge).sum(-1) + (directed_weights(phi, d) * d * d).sum(-1)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        hinge = (d @ phi["a"].swapaxes(-1, -2)).clip(min=0)
        return 2 * (hinge @ phi["a"] + directed_weights(phi, d) * d)

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        u = d @ phi["a"].swapaxes(-1, -2)
        is_on = (u >= 0) + 0 * u  # a mask in the dtype of u
        return 2 * (is_on @ (phi["a"] * phi["a"]) + directed_weights(phi, d))

    def fit(self, answers: Answers) -> dict[str, Array]:
        r"""Minimise over hinges and weights together, then lift the weights to the floor.

        The result is a local optimum: the fit is not convex in the hinges. Descent starts from
        smaller versions of the best directed weights, and hinges in random directions.
        """
        data = Standardised.of(answers)
        shape = self.parameter_shapes(data.d.shape[1])["a"]
        squares = directed_squares(data.d)
        d32, squares32, regret32 = (
            values.astype(np.float32) for values in (data.d, squares, data.regret)
        )

        def objective(parameters: Array) -> tuple[float, Array]:
            a, w = np.split(parameters.astype(np.float32), [shape[0] * shape[1]])
            hinge = np.maximum(d32 @ a.reshape(shape).T, 0.0)
            residual = np.einsum("kr,kr->k", hinge, hinge) + squares32 @ w - regret32
            hinge *= residual[:, np.newaxis]
            gradient = np.concatenate([2 * (hinge.T @ d32).ravel(), residual @ squares32])
            value = residual @ residual / (2 * len(residual))
            return float(value), gradient.astype(np.float64) / len(residual)

        hinges = np.random.default_rng(0).standard_normal(shape) * data.is_perturbed
        hinges *= np.sqrt(2 * _HINGE_SHARE * data.typical_cost / hinges.size)  # half are on
        weights = (1 - _HINGE_SHARE) * self.solve_weights(squares, data)
        a, w = self.descend(
            objective, data, hinges, weights, b=_PENALTY, tolerance=_TOLERANCE, max_steps=_MAX_STEPS
        )
        mean_weight = w.mean() + np.square(a).sum(axis=0).mean() / 2
        w_plus, w_minus = data.weights(np.maximum(w, self.min_weight * mean_weight).reshape(2, -1))
        return {"a": data.factor(a.T).T, "w_plus": w_plus, "w_minus": w_minus}
