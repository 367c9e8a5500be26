"""Any PyTorch module, or a linear model, trained on a learned loss."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
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
from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss
from lodl.training._features import check_numbers, count_items
from lodl.training._learned_loss_module import LearnedLossModule
from lodl.training._scaling import Scaling
from lodl.training._scores import Score, validation_loss
from lodl.training._single import train_singly
from lodl.training._stack import can_be_stacked
from lodl.training._torch_predictor import LinearShape, TorchPredictor, device_of, dtype_of
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
        start = _Start.of(self, x, loss)
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
        starts = [_Start.of(self, x, loss) for _ in held_out]
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

    def _settings(self, n: int) -> TrainingSettings:
        if self.settings is not None:
            return self.settings
        settings = replace(_LINEAR if self.module is None else _MODULE, seed=self.seed)
        return settings if n < _LARGE else replace(settings, batch_size=_BATCH)

    def initial(self, linear: LinearShape) -> Iterator[nn.Module]:
        """Yield the module in several initial states."""
        for i in range(self.n_initialisations):
            seed = self.seed * self.n_initialisations + i
            if self.module is None:
                yield linear.model(seed)
            else:
                yield deepcopy(self.module) if i == 0 else _reset(deepcopy(self.module), seed)


@dataclass(frozen=True, eq=False)
class _Start:
    """Modules before training, and the scales around them."""

    modules: list[nn.Module]
    linear: LinearShape | None
    features: Scaling
    labels: Scaling
    unit: float

    @classmethod
    def of(cls, learner: TorchLearner, x: Array, loss: LearnedLoss) -> "_Start":
        n_items = count_items(x, loss.y)
        labels = Scaling.of_labels(loss.y, n_items) if learner.scale_labels else Scaling.none()
        shape = LinearShape(x.shape[-1], loss.label_shape, n_items)
        modules = list(learner.initial(shape))
        _check_outputs(modules[0], x, loss.label_shape)
        linear = shape if learner.module is None else None
        return cls(modules, linear, Scaling.of_features(x), labels, _unit(loss))

    def criterion(self, loss: LearnedLoss) -> "_Criterion":
        return _Criterion(loss, _Output(self.labels, self.modules[0]), self.unit)

    def predictor(self, trained: Trained, models: slice) -> TorchPredictor:
        n_steps = round(float(trained.best_steps[models].mean()))
        return TorchPredictor(
            tuple(trained.models[models]), self.linear, self.features, self.labels, n_steps
        )


class _Output:
    """Outputs of a module in the labels' own unit."""

    def __init__(self, labels: Scaling, module: nn.Module) -> None:
        self.dtype, self.device = dtype_of(module), device_of(module)
        self.centre, self.spread = (
            torch.as_tensor(values, dtype=self.dtype, device=self.device)
            for values in (labels.centre, labels.spread)
        )

    def __call__(self, outputs: Tensor) -> Tensor:
        return self.centre + self.spread * outputs


class _Criterion:
    """A learned loss of a module's outputs, in a unit in which it is of ordinary size."""

    def __init__(self, loss: LearnedLoss, output: _Output, unit: float) -> None:
        self.loss = LearnedLossModule(loss, reduction="none", dtype=output.dtype).to(output.device)
        self.output, self.unit = output, unit
        self.n_instances = loss.n_instances

    def __call__(self, y_hat: Tensor, index: Tensor) -> Tensor:
        losses: Tensor = self.loss(self.output(y_hat), index) / self.unit
        return losses


def _unit(loss: LearnedLoss) -> float:
    """Return the mean loss of the mean label: Adam should not see the unit of the objective."""
    mean = np.broadcast_to(loss.y.mean(axis=0), loss.y.shape)
    return float(loss.value(mean).mean()) or 1.0


def _check_outputs(module: nn.Module, x: Array, label_shape: tuple[int, ...]) -> None:
    """Check that a module takes the features and returns predictions of the labels' shape."""
    few = torch.as_tensor(x[:2], dtype=dtype_of(module), device=device_of(module))
    try:
        with torch.no_grad():
            outputs = deepcopy(module).eval()(few)
    except RuntimeError as error:
        raise InvalidInputError(
            f"`module` must take features of shape (n, *{x.shape[1:]}): {error}"
        ) from error
    got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    if got != (len(few), *label_shape):
        raise InvalidInputError(
            f"`module` must return a tensor of shape (n, *{label_shape}), as the labels have, got "
            f"{got} for {len(few)} instances."
        )


def _latest() -> Score:
    """Return a score that finds every state better than the one before."""
    numbers = count()

    def score(y_hat: Tensor) -> Tensor:
        return torch.full((len(y_hat),), -float(next(numbers)), dtype=torch.float64)

    return score


def _reset(module: nn.Module, seed: int) -> nn.Module:
    """Draw new initial parameters in every layer that can."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for layer in module.modules():
            reset = getattr(layer, "reset_parameters", None)
            if callable(reset):
                reset()
    return module
