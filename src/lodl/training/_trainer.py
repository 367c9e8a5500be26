"""A small trainer: Adam, early stopping, many initialisations at once."""

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from lodl._arrays import check_count
from lodl._progress import progress_bar
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.training._batches import Batches
from lodl.training._criteria import Criterion, check_instances, check_losses
from lodl.training._scores import Score, check_first_scores
from lodl.training._stack import Stack, check_trainable

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingSettings:
    """How long and how fast to train.

    Attributes:
        learning_rate: Learning rate of Adam.
        n_steps: Maximum number of steps.
        validate_every: Steps between two validation scores.
        patience: Steps without a better validation score after which a model stops.
        batch_size: Instances per step; None means all of them.
        seed: Random seed for the order of the batches.
    """

    learning_rate: float = 1e-3
    n_steps: int = 500
    validate_every: int = 5
    patience: int = 100
    batch_size: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.learning_rate < math.inf:
            raise InvalidInputError(
                f"`learning_rate` must be finite and above 0, got {self.learning_rate!r}."
            )
        check_count("n_steps", self.n_steps, minimum=0)
        check_count("validate_every", self.validate_every)
        check_count("patience", self.patience)
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)


_DEFAULT_SETTINGS = TrainingSettings()


@dataclass(frozen=True, eq=False)
class Trained:
    """Trained models, their scores, and how long they took.

    Attributes:
        models: The models, each with its best state restored.
        scores: The best validation score of each model, shape (models,).
        best_steps: The step of that score, shape (models,).
        last_steps: The step at which each model stopped, shape (models,).
        seconds: Wall-clock time.
    """

    models: list[nn.Module]
    scores: Array
    best_steps: npt.NDArray[np.int64]
    last_steps: npt.NDArray[np.int64]
    seconds: float


def train(
    models: Sequence[nn.Module],
    x: npt.ArrayLike,
    *,
    criterion: Criterion,
    x_validation: npt.ArrayLike,
    score: Score,
    settings: TrainingSettings = _DEFAULT_SETTINGS,
    progress: bool = True,
) -> Trained:
    """Train several initialisations of one model at once, with Adam and early stopping.

    All models see the same batches, and each stops on its own. The result is the same as training
    them one after another, up to rounding.

    Args:
        models: Models of one architecture, each with its own initial state; they are not
            changed. Frozen parameters stay frozen. Layers with random draws or running statistics
            (dropout, batch normalisation) need a loop of your own with `LearnedLossModule`.
        x: Features of the training instances, instance first.
        criterion: Losses (models, n) of predictions for the instances of an index.
        x_validation: Features of the validation instances.
        score: Validation scores (models,) of predictions, lower is better: `validation_loss` or
            `validation_cost`.
        settings: How long and how fast to train.
        progress: Whether to show a bar on a terminal, and to warn if all models ran out of steps.

    Raises:
        InvalidInputError: The models are not alike or have buffers or dropout, the features or the
            first validation scores are not finite, or losses or scores have the wrong shape.
    """
    check_instances(criterion, len(np.asarray(x)), "x")
    started = time.perf_counter()
    stack = Stack(models)
    check_trainable(models[0])
    features = as_features(x, "x", stack.dtype).to(stack.device)
    features_validation = as_features(x_validation, "x_validation", stack.dtype).to(stack.device)
    best = Best(stack)
    optimiser = torch.optim.Adam(stack.parameters.values(), lr=settings.learning_rate)
    batches = Batches(len(features), settings.batch_size, settings.seed)
    step = 0
    with progress_bar(
        settings.n_steps, unit="steps", description="training", enabled=progress
    ) as bar:
        while True:
            if step % settings.validate_every == 0 or step == settings.n_steps:
                with torch.no_grad():
                    best.update(stack, score(stack.predict(features_validation)), step)
                    going_on = step - best.steps[stack.members] <= settings.patience
                    stack.keep(going_on, optimiser)
                if step == settings.n_steps or not going_on.any():
                    break
            index = batches.next()
            optimiser.zero_grad()
            y_hat = stack.predict(features[index], training=True)
            losses = criterion(y_hat, index)
            check_losses(losses, y_hat)
            losses.mean(dim=-1).sum().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            step += 1
            bar.update()
    if progress:
        best.warn_if_out_of_steps(settings.n_steps)
    return best.trained(stack, time.perf_counter() - started)


def predict(models: Sequence[nn.Module], x: npt.ArrayLike) -> Array:
    """Return the predictions of each model in evaluation mode, shape (models, n, *label_shape)."""
    with torch.no_grad():
        stack = Stack(models)
        features = as_features(x, "x", stack.dtype).to(stack.device)
        return stack.predict(features).double().cpu().numpy()


class Best:
    """The best state of each model so far."""

    def __init__(self, stack: Stack) -> None:
        n_models = len(stack.models)
        self.parameters = {name: rows.detach().clone() for name, rows in stack.parameters.items()}
        self.scores = torch.full((n_models,), torch.inf, dtype=torch.float64)
        self.steps = torch.zeros(n_models, dtype=torch.int64)
        self.last_steps = torch.zeros(n_models, dtype=torch.int64)

    def update(self, stack: Stack, scores: Tensor, step: int) -> None:
        """Keep the state of those models whose score is better than before."""
        if step == 0:
            check_first_scores(scores, len(stack.models))
        scores = scores.cpu()
        self.last_steps[stack.members] = step
        better = scores < self.scores[stack.members]
        members = stack.members[better]
        self.scores[members] = scores[better].to(self.scores.dtype)
        self.steps[members] = step
        for name, rows in stack.parameters.items():
            self.parameters[name][members] = rows.detach()[better]

    def trained(self, stack: Stack, seconds: float) -> Trained:
        """Return the models, each in its best state."""
        return Trained(
            models=stack.unstack(self.parameters),
            scores=self.scores.numpy(),
            best_steps=self.steps.numpy(),
            last_steps=self.last_steps.numpy(),
            seconds=seconds,
        )

    def warn_if_out_of_steps(self, n_steps: int) -> None:
        """Warn if every model was best at the last step."""
        if n_steps and (self.steps == n_steps).all():
            _logger.warning(
                "Every model was still improving at the last of %d steps: raise `n_steps` or "
                "`learning_rate`, or scale the models' outputs to the labels.",
                n_steps,
            )


def as_features(x: npt.ArrayLike, name: str, dtype: torch.dtype) -> Tensor:
    """Return features as a tensor; raise if they are not finite in its type."""
    features = torch.as_tensor(np.asarray(x), dtype=dtype)
    if not features.isfinite().all():
        where = tuple((~features.isfinite()).nonzero()[0].tolist())
        raise InvalidInputError(
            f"`{name}` must be finite in {features.dtype}, got {features[where].item()} at {where}."
        )
    return features
