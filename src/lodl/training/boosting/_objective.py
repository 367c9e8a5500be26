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
from lodl.losses import Family, LearnedLoss, is_squared_error
from lodl.training._features import Index

_CAUTION = 10.0  # divides the steps on losses made of decisions


class LossAt:
    """A learned loss at some instances, whose parameters are copied once.

    Args:
        loss: The learned loss.
        index: The instances. Defaults to all.
    """

    def __init__(self, loss: LearnedLoss, index: Index | None = None) -> None:
        at = slice(None) if index is None else index
        self.family: Family = loss.family
        self.y, self.phi = loss.y[at], {name: rows[at] for name, rows in loss.phi.items()}
        self.is_squared_error = is_squared_error(loss)

    def value(self, y_hat: Array) -> float:
        """Return the mean loss of predictions."""
        return float(self.family.value(self.phi, self._errors(y_hat)).mean())

    def gradient(self, y_hat: Array) -> Array:
        """Return the gradient in the shape of the labels."""
        gradient: Array = self.family.gradient(self.phi, self._errors(y_hat))
        return gradient.reshape(self.y.shape)

    def curvature(self, y_hat: Array) -> Array:
        """Return the diagonal of the second derivative in the shape of the labels."""
        curvature: Array = self.family.curvature(self.phi, self._errors(y_hat))
        return curvature.reshape(self.y.shape)

    def _errors(self, y_hat: Array) -> Array:
        return (y_hat.reshape(self.y.shape) - self.y).reshape(len(self.y), 1, -1)


@dataclass(frozen=True, eq=False)
class BoostingObjective:
    """Gradient and Hessian of a learned loss, in a unit in which the Hessian is about 1.

    Attributes:
        loss: The learned loss at the training instances.
        floor: A number that is added to the curvature, in the unit of the loss.
        unit: The mean of their sum.
        uses_curvature: Whether the Hessian is more than the floor.
    """

    loss: LossAt
    floor: float
    unit: float
    uses_curvature: bool

    @classmethod
    def of(cls, loss: LearnedLoss, index: Index | None = None) -> "BoostingObjective":
        """Return the objective of a loss at some instances. Defaults to all of them."""
        part = LossAt(loss, index)
        mean = np.broadcast_to(part.y.mean(axis=0), part.y.shape)
        if loss.family.uses_slopes:
            size = float(np.sqrt(np.mean(np.square(part.gradient(mean)))))
            spread = float(np.sqrt(np.var(part.y, axis=0).mean())) or 1.0
            constant = _CAUTION * size / spread or 1.0
            return cls(part, constant, constant, uses_curvature=False)
        curvature = part.curvature(mean)
        is_flat = np.ptp(curvature) == 0  # squared error
        floor = 0.0 if is_flat else float(curvature.mean())
        return cls(part, floor, float(curvature.mean()) + floor or 1.0, uses_curvature=True)

    def __call__(self, y_hat: Array) -> tuple[Array, Array]:
        """Return gradient and Hessian in the shape of the predictions.

        Args:
            y_hat: Predictions of all instances in order, in any shape that holds them row by row:
                one row for each instance, or one for each item.
        """
        n, *label_shape = self.loss.y.shape
        if y_hat.size != self.loss.y.size:
            raise InvalidInputError(
                f"Predictions must be of the {n} instances of the loss, with labels of shape "
                f"{tuple(label_shape)}, got shape {y_hat.shape}. Use `loss.subset(index)` for some "
                "of the instances."
            )
        predictions = np.asarray(y_hat, dtype=np.float64)
        gradient = self.loss.gradient(predictions) / self.unit
        if not self.uses_curvature:
            return gradient.reshape(y_hat.shape), np.ones(y_hat.shape)
        hessian = (self.loss.curvature(predictions) + self.floor) / self.unit
        return gradient.reshape(y_hat.shape), hessian.reshape(y_hat.shape)


@dataclass(frozen=True, eq=False)
class CustomObjective:
    """An objective as XGBoost and LightGBM call it, in both interfaces that each of them has.

    Unlike a lambda it can be pickled with a regressor.

    Attributes:
        objective: The objective of predictions.
        data: The framework's class of training data.
        start: Predictions to which the framework adds. XGBoost keeps its own in single precision.
    """

    objective: BoostingObjective
    data: type
    start: Array | float = 0.0

    def __call__(self, first: Any, second: Any) -> tuple[Array, Array]:
        """Return gradient and Hessian of `(predictions, data)` or `(labels, predictions)`."""
        added = np.asarray(first if isinstance(second, self.data) else second)
        start = np.reshape(self.start, added.shape) if np.ndim(self.start) else self.start
        return self.objective(start + added)
