"""Modules before training, with the scales around them."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss
from lodl.training._features import count_items
from lodl.training._learned_loss_module import LearnedLossModule
from lodl.training._scaling import Scaling
from lodl.training._torch_predictor import LinearShape, TorchPredictor, device_of, dtype_of
from lodl.training._trainer import Trained


@dataclass(frozen=True, eq=False)
class Start:
    """Modules before training, and the scales around them."""

    modules: list[nn.Module]
    linear: LinearShape | None
    features: Scaling
    labels: Scaling
    unit: float

    @classmethod
    def of(
        cls,
        module: nn.Module | None,
        x: Array,
        loss: LearnedLoss,
        seeds: Sequence[int],
        *,
        scale_labels: bool,
    ) -> "Start":
        """Return a module in one initial state for each seed: its own, then new ones.

        Args:
            module: The module; None is a linear model.
            x: Features of the training instances.
            loss: Their loss.
            seeds: Random seeds of the initial states.
            scale_labels: Whether outputs are scaled to the labels.
        """
        n_items = count_items(x, loss.y)
        labels = Scaling.of_labels(loss.y, n_items) if scale_labels else Scaling.none()
        linear = None
        if module is None:
            linear = LinearShape(x.shape[-1], loss.label_shape, n_items)
            modules = [linear.model(seed) for seed in seeds]
        else:
            modules = [_reset(deepcopy(module), seed) for seed in seeds[1:]]
            modules = [deepcopy(module), *modules]
        _check_outputs(modules[0], x, loss.label_shape)
        return cls(modules, linear, Scaling.of_features(x), labels, _unit(loss))

    def criterion(self, loss: LearnedLoss) -> "ScaledCriterion":
        """Return what the outputs of the modules cost."""
        return ScaledCriterion(loss, _Output(self.labels, self.modules[0]), self.unit)

    def predictor(self, trained: Trained, models: slice) -> TorchPredictor:
        """Return the mean of some trained modules."""
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


class ScaledCriterion:
    """A learned loss of a module's outputs, in a unit in which it is of ordinary size."""

    def __init__(self, loss: LearnedLoss, output: _Output, unit: float) -> None:
        self.loss = LearnedLossModule(loss, reduction="none", dtype=output.dtype).to(output.device)
        self.output, self.unit = output, unit
        self.n_instances = loss.n_instances

    def __call__(self, y_hat: Tensor, index: Tensor | None) -> Tensor:
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


def _reset(module: nn.Module, seed: int) -> nn.Module:
    """Draw new initial parameters in every layer that can."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for layer in module.modules():
            reset = getattr(layer, "reset_parameters", None)
            if callable(reset):
                reset()
    return module
