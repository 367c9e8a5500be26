"""What stops a training run: a loss or a cost on the validation instances."""

from collections.abc import Callable

import torch
from torch import Tensor

from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.training._criteria import Criterion, check_instances, check_losses, shape_or_type

Score = Callable[[Tensor], Tensor]
"""Validation scores (models,), lower is better, of predictions (models, n, *label_shape)."""


def validation_loss(criterion: Criterion, n_instances: int) -> Score:
    """Score predictions by their mean loss.

    Args:
        criterion: Losses of the validation instances, such as those learned for them.
        n_instances: Number of validation instances.
    """
    check_instances(criterion, n_instances, "n_instances")
    index = torch.arange(n_instances)

    def score(y_hat: Tensor) -> Tensor:
        losses = criterion(y_hat, index)
        check_losses(losses, y_hat)
        return losses.mean(dim=-1)

    return score


def validation_cost(cost: Callable[[Array], Array]) -> Score:
    """Score predictions by their mean cost, which a function of NumPy arrays gives.

    For the mean regret of the decisions, at one solver call per prediction:

        validation_cost(partial(lodl.evaluation.regret, problem, y=y, progress=False))

    A model with a prediction that is not finite scores NaN, which is never better.

    Args:
        cost: Returns costs (models, n) of predictions (models, n, *label_shape).
    """

    def score(y_hat: Tensor) -> Tensor:
        scores = torch.full((len(y_hat),), torch.nan, dtype=torch.float64)
        finite = y_hat.flatten(1).isfinite().all(dim=1).cpu()
        if finite.any():
            costs = cost(y_hat[finite].double().cpu().numpy())
            scores[finite] = torch.as_tensor(costs.mean(axis=-1))
        return scores

    return score


def check_first_scores(scores: object, n_models: int) -> None:
    """Check that every model has one finite score before it is trained."""
    if not isinstance(scores, Tensor) or scores.shape != (n_models,):
        raise InvalidInputError(
            f"`score` must return a tensor of shape (models,), here ({n_models},), "
            f"got {shape_or_type(scores)}. Does it average over the instances only?"
        )
    if not scores.isfinite().all():
        raise InvalidInputError(
            "`score` must be finite for the models before they are trained, got "
            f"{scores.tolist()}. Check the validation labels and the models' predictions."
        )
