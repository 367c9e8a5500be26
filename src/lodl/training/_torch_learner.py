"""Any PyTorch module, or a linear model, trained on a learned loss."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from lodl._threads import one_torch_thread
from lodl._typing import Array
from lodl._validation import check_count
from lodl.losses import LearnedLoss
from lodl.training._features import check_numbers
from lodl.training._scores import Score, validation_loss
from lodl.training._single import train_singly
from lodl.training._stack import can_be_stacked
from lodl.training._torch_predictor import TorchPredictor, device_of
from lodl.training._torch_start import Start
from lodl.training._trainer import Trained, TrainingSettings, train, train_members

_LINEAR = TrainingSettings(learning_rate=0.03, n_steps=1000, patience=100)
_MODULE = TrainingSettings(learning_rate=2e-3, n_steps=1000, patience=100)
_LARGE = 2000  # instances from which on steps see batches
_BATCH = 256


@dataclass(frozen=True, eq=False)
class TorchLearner:
    """Train a module on a learned loss, from several initial states, with Adam.

    Features are standardised, and the module's outputs are multiplied by the labels' deviation and
    added to their mean, so that a module that predicts numbers around 0 and 1 is right for labels
    in any unit. The prediction is the mean over the initial states.

    Attributes:
        module: Maps features (n, p), or (n, items, p), to the shape of the labels, on whatever
            device it is; None is a linear model. It is not changed.
        n_initialisations: Number of initial states: the module's own, then new ones by the
            `reset_parameters` of its layers.
        settings: How fast and how long to train; None is 1000 steps at most, of batches of 256
            where there are 2000 instances or more.
        scale_labels: Whether outputs are scaled. Turn it off where the last layer has a range that
            is meant for the labels themselves, as a ReLU or a tanh has.
        seed: Random seed for initial states, batches and dropout.

    Example:
        >>> from lodl.training.torch import TorchLearner
        >>> domain = lodl.domains.knapsack(sizes=(30, 1, 1))
        >>> x, y = domain.splits.train.x, domain.splits.train.y
        >>> loss = lodl.learn_loss(domain.problem, y)
        >>> learner = TorchLearner(n_initialisations=1)
        >>> learner.train(x, loss, n_steps=10).predict(x).shape
        (30, 16)
    """

    module: nn.Module | None = None
    n_initialisations: int = 2
    settings: TrainingSettings | None = None
    scale_labels: bool = True
    seed: int = 0
    stops_early = True

    def __post_init__(self) -> None:
        check_count("n_initialisations", self.n_initialisations)

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        *,
        x_validation: Any = None,
        loss_validation: LearnedLoss | None = None,
        n_steps: int | None = None,
    ) -> TorchPredictor:
        x = check_numbers(x, loss.n_instances)
        start = self._start(x, loss)
        settings = self._settings(loss.n_instances)
        if x_validation is None or loss_validation is None:
            steps = settings.n_steps if n_steps is None else n_steps
            settings = replace(settings, n_steps=steps, validate_every=max(steps, 1))
            held_out, score = x[:1], _latest()
        else:
            n = loss_validation.n_instances
            held_out = check_numbers(x_validation, n, n_features=x.shape[-1])
            score = validation_loss(start.criterion(loss_validation), n)
        run = train if can_be_stacked(start.modules[0]) else train_singly
        with one_torch_thread():
            trained: Trained = run(
                start.modules,
                start.features.scaled(x),
                criterion=start.criterion(loss),
                x_validation=start.features.scaled(held_out),
                score=score,
                settings=settings,
                progress=False,
            )
        return start.predictor(trained, slice(None))

    def train_folds(
        self, x: Any, loss: LearnedLoss, held_out: Sequence[npt.NDArray[np.intp]]
    ) -> list[TorchPredictor] | None:
        """Return a model trained without each part, stopped on the part's own loss; all at once.

        Features and outputs are scaled alike for all folds. None where the module cannot be
        stacked.
        """
        x = check_numbers(x, loss.n_instances)
        starts = [self._start(x, loss) for _ in held_out]
        modules = [module for start in starts for module in start.modules]
        if not can_be_stacked(modules[0]):
            return None
        n, criterion = self.n_initialisations, starts[0].criterion(loss)
        is_out = torch.zeros(len(held_out), loss.n_instances, dtype=torch.bool)
        for mask, part in zip(is_out, held_out, strict=True):
            mask[torch.as_tensor(part)] = True
        is_out = is_out.repeat_interleave(n, dim=0).to(device_of(modules[0]))
        everything = torch.arange(loss.n_instances)

        def losses_of(y_hat: Tensor, index: Tensor, members: Tensor) -> Tensor:
            return criterion(y_hat, index) * ~is_out[members][:, index]

        def scores_of(y_hat: Tensor, members: Tensor) -> Tensor:
            out = is_out[members]
            return (criterion(y_hat, everything) * out).sum(dim=1) / out.sum(dim=1)

        scaled = starts[0].features.scaled(x)
        with one_torch_thread():
            trained = train_members(
                modules,
                scaled,
                losses_of=losses_of,
                x_validation=scaled,
                scores_of=scores_of,
                settings=self._settings(loss.n_instances),
            )
        return [
            start.predictor(trained, slice(i * n, (i + 1) * n)) for i, start in enumerate(starts)
        ]

    def _start(self, x: Array, loss: LearnedLoss) -> Start:
        n = self.n_initialisations
        seeds = range(self.seed * n, (self.seed + 1) * n)
        return Start.of(self.module, x, loss, seeds, scale_labels=self.scale_labels)

    def _settings(self, n: int) -> TrainingSettings:
        if self.settings is not None:
            return self.settings
        settings = replace(_LINEAR if self.module is None else _MODULE, seed=self.seed)
        return settings if n < _LARGE else replace(settings, batch_size=_BATCH)


def _latest() -> Score:
    """Return a score that finds every state better than the one before."""
    numbers = count()

    def score(y_hat: Tensor) -> Tensor:
        return torch.full((len(y_hat),), -float(next(numbers)), dtype=torch.float64)

    return score
