r"""Linear models on convex losses: quasi-Newton descent, pulled towards the plain model's slopes.

A linear model with weights W and constant c minimises, over the instances of a mask,

    mean_i L_i(x_i W + c - y_i) + sum_j u_j (W_j - W0_j)' (p/n X'X/n + lambda) (W_j - W0_j)

for the p centred features X of n rows, and the plain model W0, c0 with its own ridge penalty
lambda. The second term is p/n of what squared error loses on the way from W0 to W, and the whole
penalty. So the slopes move as far as the data can tell, and the constant is free: a model with too
many features is the plain model, shifted to the quantile that the loss wants. u_j is the weight of
squared error that costs as much as the loss at the plain model's errors d,

    u_j = mean(d_j dL/dd_j) / (2 mean(d_j^2)).

The strength p / n needs no tuning: decisions were equally good between 0.3 and 3 times it. Kinks
are rounded, first widely, then to a tenth of the sampled errors. Features are whitened by the
Cholesky factor of X'X / n: L-BFGS needs thousands of steps for features that nearly repeat.
"""

from typing import Any

import numpy as np

from lodl._typing import Array, Flags
from lodl.losses import LearnedLoss

_RIDGE = 1e-2  # least ridge penalty in the pull, as a share of the features' variance
_ROUNDINGS = (0.6, 0.1)  # widths of kinks, in units of the family's width
_MAX_STEPS = 80  # per rounding
_MEMORY = 20  # gradients that L-BFGS remembers
_TINY = 1e-9  # share of the largest curvature or error
_LEAST_UNIT = 0.01  # u_j, as a share of the mean, in units of the plain model's errors


class Pulled:
    """Trains a plain linear model further on a convex loss. The step from it is flat and whitened.

    There is one row per instance or item, and slopes have one row per feature. `penalty` is their
    ridge penalty in the plain model, per unit of mean squared error.
    """

    def __init__(
        self,
        rows: Array,
        loss: LearnedLoss,
        slopes: Array,
        constant: Array,
        *,
        has_constant: bool = True,
        penalty: Array | float = 0.0,
        is_free: Flags | None = None,
    ) -> None:
        n_rows, n_features = rows.shape
        self.loss, self.family, self.has_constant = loss, loss.family, has_constant
        self.slopes, self.constant = slopes, constant
        self.is_free = None if is_free is None or is_free.all() else is_free
        self.mean = rows.mean(axis=0) if has_constant else np.zeros(n_features)
        self.rows = rows - self.mean
        self.errors = rows @ slopes + constant - loss.y.reshape(n_rows, -1)
        gram = self.rows.T @ self.rows / n_rows
        variance = gram.diagonal()
        gram += _RIDGE * np.diag(np.maximum(variance, _TINY * (variance.max() or 1.0)))
        self.gram = n_features / n_rows * gram
        self.penalty = np.broadcast_to(penalty, slopes.shape)
        bend = gram + np.diag(self.penalty.mean(axis=1))
        if self.is_free is None:
            self.whiten = np.linalg.inv(np.linalg.cholesky(bend)).T
        else:  # slopes that stay as they are must not mix with others
            self.whiten = np.diag(1 / np.sqrt(bend.diagonal()))
        d, shape = self._by_instance(self.errors), self.errors.shape
        gradient = loss.family.gradient(loss.phi, d).reshape(shape)
        curvature = loss.family.curvature(loss.phi, d).reshape(shape).mean(axis=0)
        self.unit = float(loss.family.value(loss.phi, d).mean()) or 1.0
        curvature = np.maximum(curvature, _TINY * (curvature.max() or self.unit))
        self.scale = np.sqrt(self.unit / curvature)
        size = np.square(self.errors).mean(axis=0)
        size = np.maximum(size, _TINY * (size.max() or 1.0))
        cost = np.maximum((gradient * self.errors).mean(axis=0) / 2, 0.0)
        self.units = np.maximum(cost, _LEAST_UNIT * float(cost.mean())) / size  # u_j

    def train(self) -> tuple[Array, Array, int]:
        """Return the slopes, the constant and the number of steps."""
        from scipy.optimize import minimize  # slow to import

        v, n_steps = np.zeros(self.slopes.size + self.constant.size * self.has_constant), 0
        for rounding in _ROUNDINGS:
            self.family = self.loss.family.rounded(rounding)
            if rounding == _ROUNDINGS[-1] or self.family != self.loss.family:
                options: Any = {"maxiter": _MAX_STEPS, "maxcor": _MEMORY}
                options |= {"ftol": 1e-9, "gtol": 1e-7}
                result = minimize(self.value, v, jac=True, method="L-BFGS-B", options=options)
                v, n_steps = np.asarray(result.x), n_steps + int(result.nit)
        step, shift = self.step(v)
        return self.slopes + step, self.constant + shift - self.mean @ step, n_steps

    def value(self, v: Array) -> tuple[float, Array]:
        """Return the objective and its gradient, in units of the plain model's loss."""
        slopes, constant = self.step(v)
        errors = self.errors + self.rows @ slopes + constant
        d, n = self._by_instance(errors), self.loss.n_instances
        by_error = self.family.gradient(self.loss.phi, d).reshape(errors.shape) / n
        pulled = self.units * (self.gram @ slopes + self.penalty * slopes)
        value = float(self.family.value(self.loss.phi, d).sum()) / n
        value += float(np.vdot(pulled, slopes))
        by_slope = self.whiten.T @ (self.rows.T @ by_error + 2 * pulled)
        gradient = np.vstack([by_slope, by_error.sum(axis=0)]) * self.scale
        if self.is_free is not None:
            gradient[:-1] *= self.is_free
        return value / self.unit, gradient.reshape(-1)[: v.size] / self.unit

    def step(self, v: Array) -> tuple[Array, Array]:
        """Return the change of the slopes, and of the constant for centred features."""
        changes = v.reshape(-1, len(self.scale)) * self.scale
        shift = changes[-1] if self.has_constant else np.zeros(len(self.scale))
        return np.asarray(self.whiten @ changes[: len(self.whiten)]), shift

    def _by_instance(self, errors: Array) -> Array:
        return np.asarray(errors.reshape(self.loss.n_instances, 1, -1))
