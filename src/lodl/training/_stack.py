"""Several models of one architecture as one."""

from collections.abc import Sequence
from copy import deepcopy
from itertools import zip_longest

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from lodl.errors import InvalidInputError

_ROWS_AT_ONCE = 4000  # of all models together: more do not fit a processor's cache


class Stack:
    """Several models of one architecture, evaluated by one batched call.

    Attributes:
        members: Which of the models are still in the stack.
        dtype: Data type of their parameters.
        device: Where their parameters are.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        _check_alike(models)
        self.models = models
        self.members = torch.arange(len(models))
        self.skeleton = deepcopy(models[0]).to("meta")
        self.parameters, self.buffers = stack_module_state(list(models))
        first = next(iter(self.parameters.values()), torch.zeros(0))
        self.dtype, self.device = first.dtype, first.device

    def predict(self, x: Tensor, *, training: bool = False) -> Tensor:
        self.skeleton.train(training)

        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
            y_hat: Tensor = functional_call(self.skeleton, (parameters, buffers), (x,))
            return y_hat

        n_rows = max(1, x.numel() // x.shape[-1])
        at_once = max(1, _ROWS_AT_ONCE // n_rows) if x.device.type == "cpu" else None
        try:
            y_hats: Tensor = torch.vmap(one, chunk_size=at_once)(self.parameters, self.buffers)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise InvalidInputError(
                f"`x` must have features that the models take, got shape {tuple(x.shape)}: {error}"
            ) from error
        return y_hats

    def keep(self, kept: Tensor, optimiser: torch.optim.Optimizer) -> None:
        """Drop the other models: they have stopped and need no further steps."""
        if kept.all():
            return
        self.members = self.members[kept]
        for name, rows in self.parameters.items():
            state = optimiser.state.pop(rows, {})  # a frozen parameter has none
            self.parameters[name] = rows.detach()[kept].requires_grad_(rows.requires_grad)
            optimiser.state[self.parameters[name]] = {
                key: value[kept] if value.ndim > 0 else value for key, value in state.items()
            }
        optimiser.param_groups[0]["params"] = list(self.parameters.values())

    def unstack(self, parameters: dict[str, Tensor]) -> list[nn.Module]:
        """Return copies of the models with the given parameters."""
        copies = [deepcopy(model) for model in self.models]
        for i, copy in enumerate(copies):
            copy.load_state_dict({name: rows[i] for name, rows in parameters.items()}, strict=False)
        return copies


def can_be_stacked(model: nn.Module) -> bool:
    """Return whether a model has neither buffers nor dropout, which each model has of its own."""
    return not _unfit(model)


def _unfit(model: nn.Module) -> list[str]:
    """Return what keeps a model from being trained together with others."""
    return [f"the buffer {name!r}" for name, _ in model.named_buffers()] + [
        f"the dropout layer {name!r}"
        for name, layer in model.named_modules()
        if isinstance(layer, nn.modules.dropout._DropoutNd)
    ]


def check_trainable(model: nn.Module) -> None:
    """Raise if a model cannot be trained together with others, or not at all."""
    unfit = _unfit(model)
    if unfit:
        raise InvalidInputError(
            "`models` are trained at once, so they must have neither buffers (as batch "
            f"normalisation has) nor dropout, got {unfit[0]}. Train such a model in a loop of your "
            "own with `LearnedLossModule`."
        )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise InvalidInputError(
            "`models` must have a parameter to train, got none with `requires_grad`."
        )


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
