"""Networks of all folds trained at once: each sees every instance, and learns from its own."""

import time
from collections.abc import Sequence
from itertools import count

import torch
from torch import Tensor, nn

from lodl._typing import Array
from lodl.training._batches import Batches
from lodl.training._stack import Stack, check_trainable
from lodl.training._torch_start import ScaledCriterion
from lodl.training._trainer import Best, Trained, TrainingSettings, as_features


def train_masked(
    models: Sequence[nn.Module],
    x: Array,
    criterion: ScaledCriterion,
    is_out: Tensor,
    settings: TrainingSettings,
    *,
    stops: bool,
) -> Trained:
    """Train models at once, each on its own instances.

    Without batches a step's own predictions also give the losses of held-out instances, so that
    looking at those costs nothing.

    Args:
        models: Models of one architecture without buffers or dropout; they are not changed.
        x: Features of all instances.
        criterion: Their losses.
        is_out: Which instances each model does not learn from, shape (models, n).
        settings: How long and how fast to train.
        stops: Whether a model is the one with the least loss on instances that it does not learn
            from, and stops when that does not fall any more; otherwise it takes all steps.
    """
    started = time.perf_counter()
    stack = Stack(models)
    check_trainable(models[0])
    features = as_features(x, "x", stack.dtype).to(stack.device)
    best = Best(stack)
    optimiser = torch.optim.Adam(stack.parameters.values(), lr=settings.learning_rate)
    batches = Batches(len(features), settings.batch_size, settings.seed)

    def losses_of(index: Tensor | None) -> Tensor:
        return criterion(stack.predict(features if index is None else features[index]), index)

    for step in count():
        index = None if batches.size == len(features) else batches.next()
        losses = losses_of(index)
        if not stops and step == settings.n_steps:
            best.update(stack, torch.zeros(len(stack.members)), step)
            break
        if stops and (step % settings.validate_every == 0 or step == settings.n_steps):
            with torch.no_grad():
                out = is_out[stack.members]
                everywhere = losses if index is None else losses_of(None)
                best.update(stack, (everywhere * out).sum(dim=1) / out.sum(dim=1), step)
                going_on = step - best.steps[stack.members] <= settings.patience
            if step == settings.n_steps or not going_on.any():
                break
            if not going_on.all():
                stack.keep(going_on, optimiser)
                losses = losses_of(index)
        is_in = ~is_out[stack.members]
        optimiser.zero_grad()
        own = losses * (is_in if index is None else is_in[:, index])
        own.mean(dim=-1).sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return best.trained(stack, time.perf_counter() - started)
