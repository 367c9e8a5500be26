"""Models that are trained together: `Stack` evaluates several at once, `Single` one."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from itertools import zip_longest

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from lodl.errors import InvalidInputError

_ROWS_AT_ONCE = 4000  # rows of all models together: more do not fit a processor's cache


Scales = tuple[Tensor, ...]
"""Centre and spread of features, centre and spread of labels, model first; or nothing."""


class Stack:
    """Several models of one architecture, evaluated by one batched call.

    Args:
        models: The models, which are not changed.
        scales: Their scales. Defaults to none.

    Attributes:
        members: The models that are still trained.
        dtype: Data type of the parameters.
        device: Device of the parameters.
    """

    def __init__(self, models: Sequence[nn.Module], scales: Scales = ()) -> None:
        _check_alike(models)
        self.models = models
        self.members = torch.arange(len(models))
        self.skeleton = deepcopy(models[0]).to("meta")
        self.parameters, self.buffers = stack_module_state(list(models))
        self.best = {name: rows.detach().clone() for name, rows in self.parameters.items()}
        first = next(iter(self.parameters.values()), torch.zeros(0))
        self.dtype, self.device, self.scales = first.dtype, first.device, scales

    @property
    def trainable(self) -> list[Tensor]:
        """The parameters for an optimiser."""
        return list(self.parameters.values())

    def predict(self, x: Tensor, *, training: bool = False) -> Tensor:
        """Return predictions of shape (models, n, *label_shape)."""
        module = self.skeleton.train(training)

        def outputs(
            parameters: dict[str, Tensor], buffers: dict[str, Tensor], scales: Scales
        ) -> Tensor:
            return _scaled(partial(functional_call, module, (parameters, buffers)), x, scales)

        at_once = max(1, _ROWS_AT_ONCE * x.shape[-1] // max(1, x.numel()))  # models
        is_one_chunk = x.device.type != "cpu" or at_once >= len(self.members)
        stacked = torch.vmap(outputs, chunk_size=None if is_one_chunk else at_once)
        try:
            y_hats: Tensor = stacked(self.parameters, self.buffers, self.scales)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise InvalidInputError(
                f"`x` must have features that the models take, got shape {tuple(x.shape)}: {error}"
            ) from error
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
        for i, copy in enumerate(copies):
            copy.load_state_dict({name: rows[i] for name, rows in self.best.items()}, strict=False)
        return copies


class Single:
    """One model with buffers or dropout, and its scales, trained like a stack of one."""

    def __init__(self, model: nn.Module, scales: Scales) -> None:
        self.module, self.scales = deepcopy(model), scales
        self.members, self.trainable = torch.arange(1), list(self.module.parameters())
        self.dtype, self.device = dtype_of(model), device_of(model)
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


def dtype_of(module: nn.Module) -> torch.dtype:
    """Return the type of a module's parameters."""
    return next((rows.dtype for rows in module.parameters()), torch.get_default_dtype())


def device_of(module: nn.Module) -> torch.device:
    """Return the device of a module's parameters."""
    return next((rows.device for rows in module.parameters()), torch.device("cpu"))


def can_be_stacked(model: nn.Module) -> bool:
    """Return whether a model has neither buffers nor dropout, which each model needs for itself."""
    return not _obstacles(model)


def check_trainable(model: nn.Module) -> None:
    """Raise if a model has buffers or dropout, or no trainable parameters."""
    obstacles = _obstacles(model)
    if obstacles:
        raise InvalidInputError(
            "`models` are trained at once, so they must have neither buffers (as batch "
            f"normalisation has) nor dropout, got {obstacles[0]}. Train such a model in your own "
            "loop with `LearnedLossModule`."
        )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise InvalidInputError(
            "`models` must have a parameter to train, got none with `requires_grad`."
        )


def _obstacles(model: nn.Module) -> list[str]:
    """Return the parts of a model that prevent stacking."""
    return [f"the buffer {name!r}" for name, _ in model.named_buffers()] + [
        f"the dropout layer {name!r}"
        for name, layer in model.named_modules()
        if isinstance(layer, nn.modules.dropout._DropoutNd)
    ]


def _check_alike(models: Sequence[nn.Module]) -> None:
    """Check that models are a list of one architecture: all run the code of the first."""
    if isinstance(models, nn.Module):
        raise InvalidInputError(
            f"`models` must be a list of models, got a {type(models).__name__}: use `[model]`."
        )
    if not models:
        raise InvalidInputError("`models` must hold at least one model, got none.")
    first = _anatomy(models[0])
    for i, model in enumerate(models):
        for expected, got in zip_longest(first, _anatomy(model), fillvalue="nothing"):
            if got != expected:
                raise InvalidInputError(
                    "`models` must be of one architecture, with the same layers and parameters, "
                    f"got `{expected}` in model 0 and `{got}` in model {i}. Train them separately."
                )


def _anatomy(model: nn.Module) -> list[str]:
    """Return the layers and parameters that models must have in common."""
    layers = [f"{name or 'model'}: {type(layer).__name__}" for name, layer in model.named_modules()]
    return layers + [
        f"{name}: {rows.dtype} {tuple(rows.shape)}{'' if rows.requires_grad else ' frozen'}"
        for name, rows in model.named_parameters()
    ]
