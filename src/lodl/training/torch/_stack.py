"""Models that are trained together: `Stack` evaluates several at once, `Single` one."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

_ROWS_AT_ONCE = 4000  # rows of all models together: more do not fit a processor's cache

Scales = tuple[Tensor, ...]
"""Centre and spread of features, centre and spread of labels, model first; or nothing."""


class Stack:
    """Several models of one architecture, evaluated by one batched call. They are not changed."""

    def __init__(self, models: Sequence[nn.Module], scales: Scales = ()) -> None:
        self.models, self.scales = models, scales
        self.members = torch.arange(len(models))  # models that are still trained
        self.skeleton = deepcopy(models[0]).to("meta")
        self.parameters, _ = stack_module_state(list(models))
        self.best = {name: rows.detach().clone() for name, rows in self.parameters.items()}

    @property
    def trainable(self) -> list[Tensor]:
        """The parameters for an optimiser."""
        return list(self.parameters.values())

    def predict(self, x: Tensor, *, training: bool = False) -> Tensor:
        """Return predictions of shape (models, n, *label_shape)."""
        module = self.skeleton.train(training)

        def outputs(parameters: dict[str, Tensor], scales: Scales) -> Tensor:
            return _scaled(partial(functional_call, module, parameters), x, scales)

        at_once = max(1, _ROWS_AT_ONCE * x.shape[-1] // max(1, x.numel()))  # models
        is_one_chunk = x.device.type != "cpu" or at_once >= len(self.members)
        stacked = torch.vmap(outputs, chunk_size=None if is_one_chunk else at_once)
        y_hats: Tensor = stacked(self.parameters, self.scales)
        return y_hats

    def remember(self, is_better: Tensor) -> None:
        """Store the present state of some members as their best."""
        members = self.members[is_better]
        for name, rows in self.parameters.items():
            self.best[name][members] = rows.detach()[is_better]

    def keep(self, going_on: Tensor, optimiser: torch.optim.Optimizer) -> None:
        """Drop the other members: they have stopped and need no further steps."""
        self.members = self.members[going_on]
        for name, rows in self.parameters.items():
            state = optimiser.state.pop(rows, {})  # a frozen parameter has none
            self.parameters[name] = rows.detach()[going_on].requires_grad_(rows.requires_grad)
            optimiser.state[self.parameters[name]] = {
                key: value[going_on] if value.ndim > 0 else value for key, value in state.items()
            }
        optimiser.param_groups[0]["params"] = self.trainable
        self.scales = tuple(part[going_on] for part in self.scales)

    def best_models(self) -> list[nn.Module]:
        """Return copies of all models, each in its best state."""
        copies = [deepcopy(model) for model in self.models]
        for i, copy in enumerate(copies):  # tied parameters have one name here, several in a model
            copy.load_state_dict({name: rows[i] for name, rows in self.best.items()}, strict=False)
        return copies


class Single:
    """One model with buffers or dropout, and its scales, trained like a stack of one."""

    def __init__(self, model: nn.Module, scales: Scales) -> None:
        self.module, self.scales = deepcopy(model), scales
        self.members, self.trainable = torch.arange(1), list(self.module.parameters())
        self.best = deepcopy(model.state_dict())

    def predict(self, x: Tensor, *, training: bool = False) -> Tensor:
        """Return predictions of shape (1, n, *label_shape)."""
        return _scaled(self.module.train(training), x, self.scales)[None]

    def remember(self, is_better: Tensor) -> None:
        """Store the present state as the best, if it is."""
        if is_better.all():
            self.best = deepcopy(self.module.state_dict())

    def keep(self, going_on: Tensor, optimiser: torch.optim.Optimizer) -> None:
        """Do nothing: the training of one model ends as a whole."""

    def best_models(self) -> list[nn.Module]:
        """Return the model in its best state."""
        self.module.load_state_dict(self.best)
        return [self.module.eval()]


def _scaled(module: Callable[[Tensor], Tensor], x: Tensor, scales: Scales) -> Tensor:
    if not scales:
        return module(x)
    x_centre, x_spread, y_centre, y_spread = scales
    return y_centre + y_spread * module((x - x_centre) / x_spread)


def can_be_stacked(model: nn.Module) -> bool:
    """Return whether a model has neither buffers nor dropout, which each model needs for itself."""
    has_dropout = any(isinstance(m, nn.modules.dropout._DropoutNd) for m in model.modules())
    return not has_dropout and not any(True for _ in model.buffers())


def as_tensor(values: object, module: nn.Module) -> Tensor:
    """Return numbers in the type and on the device of a module's parameters."""
    first = next(module.parameters())
    return torch.as_tensor(values, dtype=first.dtype, device=first.device)
