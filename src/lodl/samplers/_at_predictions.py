"""The sampler at and around a model's predictions."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_labels, check_predictions
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.samplers._sampler import Sampler, Scale


@dataclass(frozen=True, eq=False)
class AtPredictions(Sampler):
    r"""The prediction itself, a point beyond it, then Gaussian noise around the prediction.

        point 0:   y_hat
        point 1:   (margin * y_hat - y) / (margin - 1),   which is 2 y_hat - y if the margin is 2
        others:    y_hat + scale * N(0, I)

    The points of a round (see `lodl.learning.learn_in_rounds`): together with samples around the
    labels they show a decision family the decisions that matter to the model. Point 0 has the
    model's own regret, and at point 1 hinges are most violated. Regrets are still scored under the
    label. With `n_exact=0` all points are noisy: the paper's empirical neighbourhood.

    Combine it with samples around the labels (`samples.union(...)`). Alone it makes regret families
    worse than squared error: in most coordinates a prediction errs on one side of the label, so the
    samples never show what the other side costs.

    Attributes:
        y_hat: Predictions in the labels' shape, one per instance.
        scale: Standard deviation of the noise (see `Sampler`).
        n_exact: How many of the first two points have no noise: 0, 1 or 2.
        margin: The margin of the family, above 1. Use 2 for families without a margin.

    Example:
        >>> y, y_hat = np.array([[3.0, 1.0]]), np.array([[2.0, 1.5]])
        >>> oracle = lodl.Oracle(lodl.domains.TopK(1))
        >>> samples = oracle.sample(y, lodl.AtPredictions(y_hat, scale=0.1), n_samples=2)
        >>> samples[0].d  # the errors of the prediction and of the point beyond it
        array([[-1. ,  0.5],
               [-2. ,  1. ]])
    """

    y_hat: npt.ArrayLike
    scale: Scale = "auto"
    n_exact: int = 2
    margin: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        y_hat = check_labels(self.y_hat, "y_hat").copy()
        y_hat.flags.writeable = False
        object.__setattr__(self, "y_hat", y_hat)
        if self.n_exact not in (0, 1, 2):
            raise InvalidInputError(f"`n_exact` must be 0, 1 or 2, got {self.n_exact!r}.")
        if not 1 < self.margin < np.inf:
            raise InvalidInputError(f"`margin` must be a number above 1, got {self.margin!r}.")

    def noise(self, rng: np.random.Generator, n: int, label_shape: tuple[int, ...]) -> Array:
        return rng.standard_normal((n, *label_shape))

    def centres(self, y: Array) -> Array:
        return check_predictions(self.y_hat, y)

    def take(self, instances: slice | npt.NDArray[np.intp]) -> Self:
        return replace(self, y_hat=np.asarray(self.y_hat)[instances])

    def place(self, noise: Array, y: Array, centre: Array, block: int) -> Array:
        points = super().place(noise, y, centre, block)
        if block == 0:
            exact = np.stack([centre, (self.margin * centre - y) / (self.margin - 1)])
            points[: self.n_exact] = exact[: min(self.n_exact, len(points))]
        return points
