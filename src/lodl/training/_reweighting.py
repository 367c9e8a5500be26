r"""Any regressor that takes sample weights, trained on a loss that is nearly quadratic.

Around predictions p a loss with gradient g and curvature h is, coordinate by coordinate,

    L(v) ~ sum_i h_i / 2 (v_i - t_i)^2 + constant,   t = p - g / h

so a model of its minimum is a weighted least squares fit to the pseudo-targets t, and with new p
that is repeated. As in boosting, h is the curvature plus its mean: steps are half as fast as
Newton's, and never faster than that. The predictions p are out of fold, as for shifted labels.

On orders under a budget (newsvendor), with ridge regression and histogram gradient boosting, this
had a lower learned loss and regret on validation instances than shifted labels, for `WeightedMSE`
and `DirectedWeightedMSE`. Hinges have no curvature of their own.
"""

from collections.abc import Callable, Iterator

import numpy as np

from lodl._typing import Array
from lodl.losses import LearnedLoss


def reweighted_targets(
    loss: LearnedLoss, out_of_fold: Callable[[Array, Array | None], Array]
) -> Iterator[tuple[Array, Array | None]]:
    """Yield the labels without weights, then targets and weights of one round after another.

    Args:
        loss: The learned loss.
        out_of_fold: Returns out-of-fold predictions of a model that is fitted to targets, with
            weights in their shape.
    """
    targets, weights = loss.y, None
    while True:
        yield targets, weights
        p = out_of_fold(targets, weights)
        curvature = np.maximum(loss.curvature(p), 0.0)
        h = curvature + (float(curvature.mean()) or 1.0)
        targets, weights = p - loss.gradient(p) / h, h / h.mean()
