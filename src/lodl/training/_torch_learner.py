"""Any PyTorch module, or a linear model, trained on a learned loss."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from lodl._arrays import check_count, take_rows
from lodl._threads import one_torch_thread
from lodl._typing import Array
from lodl.losses import LearnedLoss, is_squared_error, squared_error_loss
from lodl.training._features import check_masks, check_numbers, count_items
from lodl.training._inner_folds import inner_folds
from lodl.training._learner import Learner, Masks
from lodl.training._remembered import Remembered
from lodl.training._scores import Score, validation_loss
from lodl.training._single import train_singly
from lodl.training._stack import can_be_stacked
from lodl.training._torch_folds import train_masked
from lodl.training._torch_predictor import TorchPredictor, device_of
from lodl.training._torch_start import Start
from lodl.training._trainer import Trained, TrainingSettings, train

_LINEAR = TrainingSettings(learning_rate=0.03, n_steps=1000, patience=100)
_MODULE = TrainingSettings(learning_rate=2e-3, n_steps=1000, patience=100)
_LARGE = 2000  # rows, of instances or of their items, from which on steps see batches
_BATCH, _LEAST_BATCH = 2000, 32  # rows of a batch, and its instances at least
_MOST_BATCH = 256  # instances
_N_FOLDS = 5  # one of which stops 2-stage where there are no validation instances


@dataclass(frozen=True, eq=False)
class TorchLearner(Learner):
    """Train a module on a learned loss, from several initial states, with Adam.

    Features are standardised, and the module's outputs are multiplied by the labels' deviation and
    added to their mean, so that a module that predicts numbers around 0 and 1 is right for labels
    in any unit. The prediction is the mean over the initial states.

    On a loss made of decisions, training goes on where 2-stage ends: it takes a tenth of the steps,
    and on paths decisions were better than from initial states. 2-stage is trained once for all
    losses of the same instances.

    Attributes:
        module: Maps features (n, p), or (n, items, p), to the shape of the labels, on whatever
            device it is; None is a linear model. It is not changed.
        n_initialisations: Number of initial states: the module's own, then new ones by the
            `reset_parameters` of its layers.
        settings: How fast and how long to train; None is 1000 steps at most, of batches of 32 to
            256 instances where there are 2000 instances, or 2000 items of all instances, or more.
        scale_labels: Whether outputs are scaled. Turn it off where the last layer has a range that
            is meant for the labels themselves, as a ReLU or a tanh has.
        seed: Random seed for initial states, batches and dropout.

    Example:
        >>> from lodl.training.torch import TorchLearner
        >>> domain = lodl.domains.knapsack(sizes=(30, 1, 1))
        >>> x, y = domain.splits.train.x, domain.splits.train.y
        >>> loss = lodl.learn_loss(domain.problem, y)
        >>> learner = TorchLearner(n_initialisations=1)
        >>> (model,) = learner.train(x, loss, n_steps=10)
        >>> model.predict(x).shape
        (30, 16)
    """

    module: nn.Module | None = None
    n_initialisations: int = 2
    settings: TrainingSettings | None = None
    scale_labels: bool = True
    seed: int = 0
    _two_stage: Remembered[list[TorchPredictor]] = field(
        default_factory=Remembered, init=False, repr=False
    )
    stops_early = True

    def __post_init__(self) -> None:
        check_count("n_initialisations", self.n_initialisations)

    @property
    def max_steps(self) -> int:
        return (self.settings or _MODULE).n_steps

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        masks: Masks | None = None,
        *,
        prepared: Any = None,
        n_steps: int | None = None,
    ) -> list[TorchPredictor]:
        x = check_numbers(x, loss.n_instances)
        if masks is None:
            return [self._train_one(x, loss, n_steps=n_steps)]
        masks = check_masks(masks, loss.n_instances)
        if (~masks).sum(axis=0).max() == 1 and n_steps in (None, self.max_steps):
            parts = [np.flatnonzero(~mask) for mask in masks]
            at_once = self._train_folds(x, loss, parts, stops=n_steps is None)
            if at_once is not None:
                return at_once
        models = []
        for mask in masks:
            rest, part = np.flatnonzero(mask), np.flatnonzero(~mask)
            stop: dict[str, Any] = {"n_steps": n_steps}
            if n_steps is None and len(part):
                stop = {"x_validation": take_rows(x, part), "loss_validation": loss.subset(part)}
            models.append(self._train_one(take_rows(x, rest), loss.subset(rest), **stop))
        return models

    def _train_one(
        self,
        x: Any,
        loss: LearnedLoss,
        *,
        x_validation: Any = None,
        loss_validation: LearnedLoss | None = None,
        n_steps: int | None = None,
    ) -> TorchPredictor:
        x = check_numbers(x, loss.n_instances)
        start, y_validation = self._start(x, loss), None
        if x_validation is not None and loss_validation is not None:
            n = loss_validation.n_instances
            x_validation = check_numbers(x_validation, n, n_features=x.shape[-1])
            y_validation = loss_validation.y
        if loss.family.uses_slopes:
            start = replace(
                start, modules=self._trained_before(x, loss.y, x_validation, y_validation)
            )
        settings = self._settings(x, loss)
        if loss_validation is None or y_validation is None:
            steps = settings.n_steps if n_steps is None else n_steps
            settings = replace(settings, n_steps=steps, validate_every=max(steps, 1))
            held_out, score = x[:1], _latest()
        else:
            held_out = x_validation
            score = validation_loss(start.criterion(loss_validation), len(y_validation))
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

    def _train_folds(
        self,
        x: Any,
        loss: LearnedLoss,
        held_out: Sequence[npt.NDArray[np.intp]],
        *,
        stops: bool = True,
    ) -> list[TorchPredictor] | None:
        """Return a model trained without each part, all at once.

        If it `stops`, then on the part's own loss. Features and outputs are scaled alike for all
        folds. None where the module cannot be stacked.
        """
        x = check_numbers(x, loss.n_instances)
        starts = [self._start(x, loss) for _ in held_out]
        if not can_be_stacked(starts[0].modules[0]):
            return None
        is_out = np.zeros((len(held_out), loss.n_instances), dtype=np.bool_)
        for mask, part in zip(is_out, held_out, strict=True):
            mask[part] = True
        if loss.family.uses_slopes:
            two_stage = self._two_stage.get(
                x,
                [loss.y, is_out],
                lambda: self._train_folds(x, squared_error_loss(loss.y), held_out) or [],
            )
            starts = [
                replace(start, modules=list(model.modules))
                for start, model in zip(starts, two_stage, strict=True)
            ]
        modules = [module for start in starts for module in start.modules]
        n, out = self.n_initialisations, torch.as_tensor(is_out, device=device_of(modules[0]))
        with one_torch_thread():
            trained = train_masked(
                modules,
                starts[0].features.scaled(x),
                starts[0].criterion(loss),
                out.repeat_interleave(n, dim=0),
                self._settings(x, loss),
                stops=stops,
            )
        models = [
            start.predictor(trained, slice(i * n, (i + 1) * n)) for i, start in enumerate(starts)
        ]
        if stops and is_squared_error(loss):
            self._two_stage.put(x, [loss.y, is_out], models)
        return models

    def _trained_before(
        self, x: Array, y: Array, x_validation: Any, y_validation: Array | None
    ) -> list[nn.Module]:
        """Return modules of 2-stage, stopped early on validation instances or on a part of its own.

        For a few instances it is not stopped.
        """
        loss = squared_error_loss(y)

        def two_stage() -> list[TorchPredictor]:
            if y_validation is not None:
                towards = squared_error_loss(y_validation)
                return [
                    self._train_one(x, loss, x_validation=x_validation, loss_validation=towards)
                ]
            if len(y) < _N_FOLDS:
                return [self._train_one(x, loss)]
            rest, part = next(inner_folds(len(y), _N_FOLDS, self.seed))
            stopped = self._train_one(
                x[rest],
                loss.subset(rest),
                x_validation=x[part],
                loss_validation=loss.subset(part),
            )
            return [self._train_one(x, loss, n_steps=stopped.n_steps)]

        key = [y] if y_validation is None else [y, x_validation, y_validation]
        return list(self._two_stage.get(x, key, two_stage)[0].modules)

    def _start(self, x: Array, loss: LearnedLoss) -> Start:
        n = self.n_initialisations
        seeds = range(self.seed * n, (self.seed + 1) * n)
        return Start.of(self.module, x, loss, seeds, scale_labels=self.scale_labels)

    def _settings(self, x: Array, loss: LearnedLoss) -> TrainingSettings:
        if self.settings is not None:
            return self.settings
        settings = replace(_LINEAR if self.module is None else _MODULE, seed=self.seed)
        n_items = count_items(x, loss.y) or 1
        if len(x) * n_items < _LARGE:
            return settings
        batch_size = min(max(_BATCH // n_items, _LEAST_BATCH), _MOST_BATCH)
        return replace(settings, batch_size=batch_size, validate_every=10)


def _latest() -> Score:
    """Return a score that finds every state better than the one before."""
    numbers = count()

    def score(y_hat: Tensor) -> Tensor:
        return torch.full((len(y_hat),), -float(next(numbers)), dtype=torch.float64)

    return score
