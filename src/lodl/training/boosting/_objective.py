r"""Gradients and Hessians of a learned loss for boosting.

Boosting takes Newton steps, coordinate by coordinate, from a diagonal Hessian. The Hessian of a
learned loss is often 0 (a hinge) or nearly so (in a direction in which no sample had a cost), where
steps would be huge. So:

- **Losses fitted to regrets** have their curvature plus its mean: half as fast as Newton where the
  curvature is ordinary, and never faster.
- **Losses made of decisions** have a constant Hessian of 10 c, c = rms(gradient) / sd(label) at the
  mean label: a step along a gradient of ordinary size is a tenth of a deviation.

Gradients and Hessians are divided by the mean Hessian. Steps stay the same, and all that a
framework compares with sums of Hessians (`min_child_weight`, `reg_lambda`, `min_sum_hessian`) acts
as it does with squared error, whose Hessian is 1: with small Hessians and the default
`min_child_weight` XGBoost silently grows trees without a split.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss

_CAUTION = 10.0  # divides the steps on losses made of decisions


@dataclass(frozen=True, eq=False)
class BoostingObjective:
    """Gradient and Hessian of a learned loss, in a unit in which the Hessian is about 1.

    It can be called as XGBoost and LightGBM do, in both interfaces that each of them has. Unlike a
    lambda it can be pickled with a regressor.
    """

    loss: LearnedLoss
    floor: float  # added to the curvature, in the unit of the loss
    unit: float  # mean of their sum
    start: Array  # predictions that trees are added to. XGBoost would keep them in single precision

    @classmethod
    def of(cls, loss: LearnedLoss, start: Array | float = 0.0) -> "BoostingObjective":
        """Return the objective of the instances of a loss."""
        start = np.asarray(start)
        mean = np.broadcast_to(loss.y.mean(axis=0), loss.y.shape)
        if loss.family.uses_slopes:
            size = float(np.sqrt(np.mean(np.square(loss.gradient(mean)))))
            spread = float(np.sqrt(np.var(loss.y, axis=0).mean())) or 1.0
            constant = _CAUTION * size / spread or 1.0
            return cls(loss, constant, constant, start)
        curvature = loss.curvature(mean)
        is_flat = np.ptp(curvature) == 0  # squared error
        floor = 0.0 if is_flat else float(curvature.mean())
        return cls(loss, floor, float(curvature.mean()) + floor or 1.0, start)

    def __call__(self, first: Any, second: Any) -> tuple[Array, Array]:
        """Return gradient and Hessian of `(predictions, data)` or `(labels, predictions)`."""
        added = np.asarray(second if isinstance(second, np.ndarray) else first)
        start = self.start.reshape(added.shape) if self.start.ndim else self.start
        return self.derivatives(start + added)

    def derivatives(self, y_hat: Array) -> tuple[Array, Array]:
        """Return gradient and Hessian in the shape of the predictions.

        Predictions are of all instances in order, one row for each instance, or one for each item.
        """
        n, *label_shape = self.loss.y.shape
        if y_hat.size != self.loss.y.size:
            raise InvalidInputError(
                f"Predictions must be of the {n} instances of the loss, with labels of shape "
                f"{tuple(label_shape)}, got shape {y_hat.shape}. Use `loss.subset(index)` for some "
                "of the instances."
            )
        predictions = y_hat.reshape(self.loss.y.shape)
        gradient = (self.loss.gradient(predictions) / self.unit).reshape(y_hat.shape)
        if self.loss.family.uses_slopes:
            return gradient, np.ones(y_hat.shape)
        hessian = (self.loss.curvature(predictions) + self.floor) / self.unit
        return gradient, hessian.reshape(y_hat.shape)
