"""The training loop for PyTorch: Adam and early stopping, many models at once."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from lodl._arrays import check_count
from lodl._progress import progress_bar
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.training._early_stopping import EarlyStopping
from lodl.training.torch._criterion import (
    Criterion,
    Score,
    check_first_scores,
    check_instances,
    check_losses,
)
from lodl.training.torch._stack import Scales, Single, Stack, can_be_stacked, check_trainable

_logger = logging.getLogger(__name__)

_MemberScore = Callable[[Tensor | None], Tensor]
"""Validation scores of the members of a stack, given the losses of the step if there are masks."""


@dataclass(frozen=True)
class TrainingSettings:
    """Length and speed of training.

    Attributes:
        learning_rate: Learning rate of Adam.
        n_steps: Maximum number of steps.
        validate_every: Steps between two validation scores.
        patience: Steps without a better validation score after which a model stops.
        batch_size: Instances per step. Defaults to all.
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
        models: The models, each in its best state.
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

    All models see the same batches, and each stops separately. The result is the same as training
    them one after another, up to rounding.

    Args:
        models: Models of one architecture, each with its own initial state; they are not
            changed. Frozen parameters stay frozen. Layers with random draws or running statistics
            (dropout, batch normalisation) need your own loop with `LearnedLossModule`.
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
    stack = Stack(models)
    check_trainable(models[0])
    features = _as_features(x, "x", stack)
    features_validation = _as_features(x_validation, "x_validation", stack)
    with progress_bar(
        settings.n_steps, unit="steps", description="training", enabled=progress
    ) as bar:
        trained = _run(
            stack,
            features,
            criterion,
            lambda _: score(stack.predict(features_validation)),
            settings,
            patience=settings.patience,
            advance=bar.update,
        )
    if progress and settings.n_steps and (trained.best_steps == settings.n_steps).all():
        _logger.warning(
            "Every model was still improving at the last of %d steps: raise `n_steps` or "
            "`learning_rate`, or scale the models' outputs to the labels.",
            settings.n_steps,
        )
    return trained


def train_masked(
    starts: Sequence[Sequence[nn.Module]],
    x: Array,
    criterion: Criterion,
    masks: npt.NDArray[np.bool_],
    scales: Scales,
    settings: TrainingSettings,
    *,
    stops: bool,
) -> Trained:
    """Train the models of each mask on its instances.

    Args:
        starts: As many models for each mask, all of one architecture. They are not changed. Models
            that cannot be stacked are trained one after another.
        x: Features of all instances.
        criterion: Their losses.
        masks: Which instances models learn from, shape (masks, n).
        scales: Scales of each mask.
        settings: How long and how fast to train.
        stops: Whether the other instances stop a model. Otherwise it takes all steps.
    """
    patience = settings.patience if stops else None
    if not stops:
        settings = replace(settings, validate_every=max(settings.n_steps, 1))
    if can_be_stacked(starts[0][0]):
        of_mask = np.repeat(np.arange(len(masks)), len(starts[0]))
        everything = [model for models in starts for model in models]
        stack = Stack(everything, tuple(part[of_mask] for part in scales))
        return _train_stack(stack, x, criterion, masks[of_mask], settings, patience)
    runs = []
    with torch.random.fork_rng(devices=[]):
        for k, models in enumerate(starts):
            for number, model in enumerate(models):
                torch.manual_seed(settings.seed + number)
                single = Single(model, tuple(part[k] for part in scales))
                runs.append(_train_single(single, x, criterion, masks[k], settings, patience))
    return Trained(
        [run.models[0] for run in runs],
        np.concatenate([run.scores for run in runs]),
        np.concatenate([run.best_steps for run in runs]),
        np.concatenate([run.last_steps for run in runs]),
        sum(run.seconds for run in runs),
    )


def _train_stack(
    stack: Stack,
    x: Array,
    criterion: Criterion,
    masks: npt.NDArray[np.bool_],
    settings: TrainingSettings,
    patience: int | None,
) -> Trained:
    """Train models at once, each on its mask.

    Without batches, the predictions of a step also give the losses outside the masks, so that
    validation scores cost nothing.
    """
    check_trainable(stack.models[0])
    features = _as_features(x, "x", stack)
    is_in = torch.as_tensor(masks, device=stack.device)

    def score(losses: Tensor | None) -> Tensor:
        is_out = ~is_in[stack.members]
        if losses is None or losses.shape != is_out.shape:
            losses = criterion(stack.predict(features), torch.arange(len(features)))
        return (losses * is_out).sum(dim=1) / is_out.sum(dim=1)

    return _run(stack, features, criterion, score, settings, patience=patience, is_in=is_in)


def _train_single(
    stack: Single,
    x: Array,
    criterion: Criterion,
    mask: npt.NDArray[np.bool_],
    settings: TrainingSettings,
    patience: int | None,
) -> Trained:
    """Train a model on features of its mask only: batch normalisation would see the others."""
    features = _as_features(x, "x", stack)
    inside, outside = (torch.as_tensor(np.flatnonzero(part)) for part in (mask, ~mask))

    def loss(y_hat: Tensor, index: Tensor) -> Tensor:
        return criterion(y_hat, inside[index])

    def score(_: Tensor | None) -> Tensor:
        return criterion(stack.predict(features[outside]), outside).mean(dim=-1)

    return _run(stack, features[inside], loss, score, settings, patience=patience)


def predict(models: Sequence[nn.Module], x: npt.ArrayLike) -> Array:
    """Return the predictions of each model in evaluation mode, shape (models, n, *label_shape)."""
    with torch.no_grad():
        stack = Stack(models)
        return stack.predict(_as_features(x, "x", stack)).double().cpu().numpy()


def _run(
    stack: Stack | Single,
    features: Tensor,
    criterion: Criterion,
    score: _MemberScore,
    settings: TrainingSettings,
    *,
    patience: int | None,
    is_in: Tensor | None = None,
    advance: Callable[[], object] = lambda: None,
) -> Trained:
    """Take steps until every model has stopped.

    Args:
        stack: The models.
        features: Features of the training instances.
        criterion: Their losses.
        score: Validation scores of the members.
        settings: How long and how fast to train.
        patience: Patience of the early stopping. If None, nothing is scored and nothing stops.
        is_in: Which instances each model learns from, shape (models, n). Defaults to all.
        advance: Called after every step.
    """
    started = time.perf_counter()
    optimiser = torch.optim.Adam(stack.trainable, lr=settings.learning_rate)
    batches = _batches(len(features), settings.batch_size, settings.seed)
    stopping = EarlyStopping(patience, len(stack.members))

    def losses_of(index: Tensor) -> Tensor:
        is_whole = len(index) == len(features)  # then in order
        y_hat = stack.predict(features if is_whole else features[index], training=True)
        losses = criterion(y_hat, index)
        check_losses(losses, y_hat)
        return losses

    for step, index in enumerate(batches):
        losses = None if is_in is None else losses_of(index)
        if step % settings.validate_every == 0 or step == settings.n_steps:
            scores = torch.zeros(len(stack.members))
            if patience is not None:
                with torch.no_grad():
                    scores = score(losses)
            if step == 0:
                check_first_scores(scores, len(stack.members))
            going_on = torch.as_tensor(stopping.update(scores.double().cpu().numpy(), step))
            stack.remember(torch.as_tensor(stopping.is_better))
            if step == settings.n_steps or not going_on.any():
                break
            if not going_on.all():
                stack.keep(going_on, optimiser)
                losses = None
        losses = losses_of(index) if losses is None else losses
        if is_in is not None:
            is_own = is_in[stack.members]
            losses = losses * (is_own if losses.shape == is_own.shape else is_own[:, index])
        optimiser.zero_grad()
        losses.mean(dim=-1).sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        advance()
    return Trained(
        stack.best_models(),
        stopping.best_scores,
        stopping.best_steps,
        stopping.last_steps,
        time.perf_counter() - started,
    )


def _batches(n: int, size: int | None, seed: int) -> Iterator[Tensor]:
    """Yield the instances of each step, by default all, in a new random order in every pass."""
    if size is None or size >= n:
        yield from repeat(torch.arange(n))
        return
    generator, left = torch.Generator().manual_seed(seed), torch.arange(0)
    while True:
        if len(left) < size:
            left = torch.randperm(n, generator=generator)
        yield left[:size]
        left = left[size:]


def _as_features(x: npt.ArrayLike, name: str, stack: Stack | Single) -> Tensor:
    """Return features as a tensor for the models. Raises if they are not finite in its type."""
    features = torch.as_tensor(np.asarray(x), dtype=stack.dtype)
    if not features.isfinite().all():
        where = tuple((~features.isfinite()).nonzero()[0].tolist())
        raise InvalidInputError(
            f"`{name}` must be finite in {features.dtype}, got {features[where].item()} at {where}."
        )
    return features.to(stack.device)
