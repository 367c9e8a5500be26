"""What a training run is stopped by: a loss, or decision quality, on validation instances."""

from collections.abc import Callable

import numpy.typing as npt
import torch
from torch import Tensor

from lodl.evaluation import decision_loss
from lodl.problems import Problem
from lodl.training._objectives import Objective
from lodl.typing import Context

Score = Callable[[Tensor], Tensor]
"""Validation scores (models,), lower is better, of predictions (models, n, *label_shape)."""


def validation_loss(objective: Objective, n_instances: int) -> Score:
    """Scores predictions by their mean loss.

    Args:
        objective: Losses of the validation instances, such as those learned for them.
        n_instances: How many there are.
    """
    index = torch.arange(n_instances)
    return lambda y_hat: objective(y_hat, index).mean(dim=-1)


def validation_decision_loss(
    problem: Problem, y: npt.ArrayLike, *, context: Context = None, n_jobs: int | None = None
) -> Score:
    """Scores predictions by the mean decision loss, at one oracle call per prediction.

    Args:
        problem: The problem whose solver decides.
        y: Labels of the validation instances.
        context: One entry per instance, or None.
        n_jobs: Workers, as in joblib.
    """

    def score(y_hat: Tensor) -> Tensor:
        losses = decision_loss(problem, y_hat.double().numpy(), y, context=context, n_jobs=n_jobs)
        return torch.as_tensor(losses.mean(axis=-1), dtype=y_hat.dtype)

    return score
