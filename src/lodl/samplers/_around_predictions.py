"""A sampler that perturbs predictions instead of labels."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_labels, check_predictions
from lodl._typing import Array
from lodl.samplers._sampler import Sampler, Scale


@dataclass(frozen=True, eq=False)
class AroundPredictions(Sampler):
    r"""Gaussian noise on every coordinate of given predictions.

        y_hat = prediction + scale * N(0, I)

    Use it to sample where a trained model predicts (the paper's empirical neighbourhood). Regrets
    are still scored under the label.

    Combine it with samples around the labels (`samples.union(...)`). On its own it makes families
    that are fitted to regrets worse than squared error: in most coordinates a prediction errs on
    one side of the label, so the samples never show what the other side costs.

    Attributes:
        y_hat: Predictions in the labels' shape, one per instance.
        scale: Standard deviation of the noise, as for every sampler.

    Example:
        >>> y, y_hat = np.array([[3.0, 1.0]]), np.array([[2.0, 1.5]])
        >>> sampler = lodl.AroundPredictions(y_hat, scale=0.1)
        >>> samples = lodl.Oracle(lodl.domains.TopK(1)).sample(y, sampler, n_samples=50)
        >>> samples[0].d.mean(axis=0).round(1)  # errors lie around that of the prediction
        array([-1. ,  0.5])
    """

    y_hat: npt.ArrayLike
    scale: Scale = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        y_hat = check_labels(self.y_hat, "y_hat").copy()
        y_hat.flags.writeable = False
        object.__setattr__(self, "y_hat", y_hat)

    def noise(self, rng: np.random.Generator, n: int, label_shape: tuple[int, ...]) -> Array:
        return rng.standard_normal((n, *label_shape))

    def centres(self, y: Array) -> Array:
        return check_predictions(self.y_hat, y)

    def take(self, instances: slice | npt.NDArray[np.intp]) -> Self:
        return replace(self, y_hat=np.asarray(self.y_hat)[instances])
