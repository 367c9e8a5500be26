"""Training of the paper's models: all initialisations at once, stopped by validation instances."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from lodl._arrays import check_labels
from lodl._typing import Array
from lodl.training.torch import TrainingSettings
from lodl.training.torch._loop import Criterion, Stack, as_tensor, run
from lodl_benchmarks.surrogates import mean_squared_error

__all__ = ["Criterion", "Trained", "predict", "squared_error", "train"]


@dataclass(frozen=True, eq=False)
class Trained:
    """Trained models, their scores, and how long they took."""

    models: list[nn.Module]  # the models, each in its best state
    scores: Array  # the least mean validation loss of each model, shape (models,)
    best_steps: npt.NDArray[np.int64]  # the step of that score, shape (models,)
    last_steps: npt.NDArray[np.int64]  # the step at which each model stopped, shape (models,)
    seconds: float  # processor time, whatever else the machine does


def train(
    models: Sequence[nn.Module],
    x: Array,
    criterion: Criterion,
    x_validation: Array,
    validation: Criterion,
    settings: TrainingSettings,
) -> Trained:
    """Train several initialisations of one model at once, with Adam and early stopping.

    All models see the same batches, and each stops separately. The result is the same as training
    them one after another, up to rounding.

    `models` have one architecture, without buffers or dropout, and are not changed. The mean loss
    of the validation instances stops a model.
    """
    started, stack = time.process_time(), Stack(models)
    features, features_validation = (as_tensor(part, models[0]) for part in (x, x_validation))
    index = torch.arange(len(features_validation))

    def score(_: Tensor | None) -> Tensor:
        return validation(stack.predict(features_validation), index).mean(dim=-1)

    best, stopping = run(stack, features, criterion, score, settings)
    return Trained(
        best,
        stopping.best_scores,
        stopping.best_steps,
        stopping.last_steps,
        time.process_time() - started,
    )


def predict(models: Sequence[nn.Module], x: npt.ArrayLike) -> Array:
    """Return the predictions of each model in evaluation mode, shape (models, n, *label_shape)."""
    with torch.no_grad():
        y_hats = Stack(models).predict(as_tensor(np.asarray(x), models[0]))
        return y_hats.double().cpu().numpy()


def squared_error(y: npt.ArrayLike) -> Criterion:
    """Return the baseline's criterion: mean squared error over the coordinates of a label."""
    labels = torch.tensor(check_labels(y), dtype=torch.get_default_dtype())

    def criterion(y_hat: Tensor, index: Tensor) -> Tensor:
        losses: Tensor = mean_squared_error(y_hat, labels[index])
        return losses

    return criterion
