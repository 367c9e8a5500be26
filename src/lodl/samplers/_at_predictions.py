"""A sampler that asks again where a model predicts."""

from dataclasses import dataclass

import numpy as np

from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.samplers._around_predictions import AroundPredictions


@dataclass(frozen=True, eq=False)
class AtPredictions(AroundPredictions):
    r"""A prediction itself, the point beyond it where hinges are most violated, then noise around.

        candidate 0:  y_hat
        candidate 1:  (margin * y_hat - y) / (margin - 1),   which is 2 y_hat - y for margin 2
        the others:   y_hat + scale * N(0, I)

    The candidates of a round: together with samples at the labels they show a decision family the
    decisions that matter to the model (see `lodl.learning.learn_in_rounds`). The regret of
    candidate 0 is the model's own. Alone they make regret-only families worse than squared error,
    as each coordinate is seen from one side only.

    Attributes:
        y_hat: Predictions in the labels' shape, one per instance.
        scale: As of every sampler.
        margin: The margin of the family, above 1; 2 where a family has none.

    Example:
        >>> y, y_hat = np.array([[3.0, 1.0]]), np.array([[2.0, 1.5]])
        >>> sampler = lodl.samplers.AtPredictions(y_hat, scale=0.1)
        >>> samples = lodl.Oracle(lodl.domains.TopK(1)).sample(y, sampler, n_samples=2)
        >>> samples[0].d  # the prediction itself, and the point beyond it
        array([[-1. ,  0.5],
               [-2. ,  1. ]])
    """

    margin: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 < self.margin < np.inf:
            raise InvalidInputError(f"`margin` must be a number above 1, got {self.margin!r}.")

    def place(self, noise: Array, y: Array, centre: Array, block: int) -> Array:
        candidates = super().place(noise, y, centre, block)
        if block == 0:
            candidates[:1] = centre
            candidates[1:2] = (self.margin * centre - y) / (self.margin - 1)
        return candidates
