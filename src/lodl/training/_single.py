"""Training of models that cannot be stacked: with buffers, dropout or batch normalisation."""

import time
from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from lodl.training._batches import Batches
from lodl.training._criteria import Criterion, check_losses
from lodl.training._scores import Score
from lodl.training._trainer import Trained, TrainingSettings


def train_singly(
    models: Sequence[nn.Module],
    x: npt.ArrayLike,
    *,
    criterion: Criterion,
    x_validation: npt.ArrayLike,
    score: Score,
    settings: TrainingSettings,
    progress: bool = False,  # noqa: ARG001 - as `train`
) -> Trained:
    """Train models one after another; arguments and result are those of `train`."""
    started = time.perf_counter()
    rows = []
    with torch.random.fork_rng(devices=[]):
        for number, model in enumerate(models):
            torch.manual_seed(settings.seed + number)
            rows.append(_train_one(deepcopy(model), x, criterion, x_validation, score, settings))
    trained, scores, best, last = zip(*rows, strict=True)
    return Trained(
        list(trained),
        np.array(scores),
        np.array(best),
        np.array(last),
        time.perf_counter() - started,
    )


def _train_one(
    model: nn.Module,
    x: npt.ArrayLike,
    criterion: Criterion,
    x_validation: npt.ArrayLike,
    score: Score,
    settings: TrainingSettings,
) -> tuple[nn.Module, float, int, int]:
    first = next(model.parameters())
    features, held_out = (
        torch.as_tensor(np.asarray(part), dtype=first.dtype, device=first.device)
        for part in (x, x_validation)
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    batches = Batches(len(features), settings.batch_size, settings.seed)
    best_state, best_score, best_step, step = deepcopy(model.state_dict()), np.inf, 0, 0
    while True:
        if step % settings.validate_every == 0 or step == settings.n_steps:
            now = _score(model, held_out, score)
            if now < best_score:
                best_state, best_score, best_step = deepcopy(model.state_dict()), now, step
            if step == settings.n_steps or step - best_step > settings.patience:
                break
        index = batches.next()
        optimiser.zero_grad()
        y_hat = model.train()(features[index])[None]
        losses = criterion(y_hat, index)
        check_losses(losses, y_hat)
        losses.mean().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        step += 1
    model.load_state_dict(best_state)
    return model.eval(), best_score, best_step, step


def _score(model: nn.Module, x: Tensor, score: Score) -> float:
    with torch.no_grad():
        return float(score(model.eval()(x)[None])[0])
