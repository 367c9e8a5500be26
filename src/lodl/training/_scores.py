"""What a training run is stopped by: a loss, or decision quality, on validation instances."""

from collections.abc import Callable

import numpy.typing as npt
import torch
from torch import Tensor

from lodl._typing import Context
from lodl.errors import InvalidInputError
from lodl.evaluation import decision_loss
from lodl.problems import Problem
from lodl.training._objectives import (
    Objective,
    check_instances,
    check_losses,
    shape_or_type,
)

Score = Callable[[Tensor], Tensor]
"""Validation scores (models,), lower is better, of predictions (models, n, *label_shape)."""


def validation_loss(objective: Objective, n_instances: int) -> Score:
    """Scores predictions by their mean loss.

    Args:
        objective: Losses of the validation instances, such as those learned for them.
        n_instances: How many there are.
    """
    check_instances(objective, n_instances, "n_instances")
    index = torch.arange(n_instances)

    def score(y_hat: Tensor) -> Tensor:
        losses = objective(y_hat, index)
        check_losses(losses, y_hat)
        return losses.mean(dim=-1)

    return score


def validation_decision_loss(
    problem: Problem, y: npt.ArrayLike, *, context: Context = None, n_jobs: int | None = None
) -> Score:
    """Scores predictions by the mean decision loss, at one oracle call per prediction.

    A model with a prediction that is not finite scores NaN, which is never better.

    Args:
        problem: The problem whose solver decides.
        y: Labels of the validation instances.
        context: One entry per instance, or None.
        n_jobs: Workers, as in joblib.
    """

    def score(y_hat: Tensor) -> Tensor:
        scores = torch.full((len(y_hat),), torch.nan, dtype=torch.float64)
        finite = y_hat.flatten(1).isfinite().all(dim=1)
        if finite.any():
            y_hat = y_hat[finite].double()
            losses = decision_loss(
                problem, y_hat.numpy(), y, context=context, n_jobs=n_jobs, progress=False
            )
            scores[finite] = torch.as_tensor(losses.mean(axis=-1))
        return scores

    return score


def check_first_scores(scores: object, n_models: int) -> None:
    """Demands one finite score for each model, before any has been trained."""
    if not isinstance(scores, Tensor) or scores.shape != (n_models,):
        raise InvalidInputError(
            f"`score` must return a tensor of shape (models,), here ({n_models},), "
            f"got {shape_or_type(scores)}. Does it take the mean over instances only?"
        )
    if not scores.isfinite().all():
        raise InvalidInputError(
            f"`score` must be finite for the models as they are given, got {scores.tolist()}: "
            "look at the validation labels and at the models' predictions."
        )
