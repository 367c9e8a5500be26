"""The training loop for PyTorch: Adam and early stopping, many models at once."""

import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from lodl._arrays import check_count
from lodl._typing import Array, Masks
from lodl.errors import InvalidInputError
from lodl.training._learner import EarlyStopping

_ROWS_AT_ONCE = 4000  # rows of all models together: more do not fit a processor's cache

Scales = tuple[Tensor, ...]
"""Centre and spread of features, centre and spread of labels, model first; or nothing."""

Criterion = Callable[[Tensor, Tensor], Tensor]
"""Losses (models, n) of predictions (models, n, *label_shape) for the instances of an index."""


@dataclass(frozen=True)
class TrainingSettings:
    """Length and speed of training."""

    learning_rate: float = 1e-3  #: Learning rate of Adam.
    n_steps: int = 500  #: Maximum number of steps.
    validate_every: int = 5  #: Steps between two validation scores.
    patience: int = 100  #: Steps without a better validation score after which a model stops.
    batch_size: int | None = None  #: Instances per step. Defaults to all.
    seed: int = 0  #: Random seed for the order of the batches.

    def __post_init__(self) -> None:
        if not 0 < self.learning_rate < math.inf:
            got = repr(self.learning_rate)
            raise InvalidInputError(f"`learning_rate` must be finite and above 0, got {got}.")
        check_count("n_steps", self.n_steps, minimum=0)
        check_count("validate_every", self.validate_every)
        check_count("patience", self.patience)
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)


class Stack:
    """Copies of models of one architecture, evaluated by one batched call if they can be.

    Models with buffers or dropout do not share a call: each of them is a stack of one.
    """

    def __init__(self, models: Sequence[nn.Module], scales: Scales = ()) -> None:
        self.models, self.scales, self.is_batched = models, scales, can_be_stacked(models[0])
        self.members = torch.arange(len(models), device=next(models[0].parameters()).device)
        self.skeleton = deepcopy(models[0]).to("meta")
        self.layers = list(self.skeleton.named_children())  # each object once
        is_whole = type(models[0]) is nn.Sequential and len(models[0]) == len(self.layers)
        self.is_plain = bool(scales) and is_whole and all(_is_plain(of) for _, of in self.layers)
        self.parameters, self.buffers = stack_module_state(list(models))
        self.best = {name: rows.detach().clone() for name, rows in self.state.items()}

    @property
    def state(self) -> dict[str, Tensor]:
        """Parameters and buffers, model first."""
        return {**self.parameters, **self.buffers}

    def predict(self, x: Tensor, *, training: bool = False) -> Tensor:
        """Return predictions of shape (models, n, *label_shape)."""
        module = self.skeleton
        if module.training != training:
            module.train(training)

        def outputs(state: dict[str, Tensor], scales: Scales) -> Tensor:
            if not scales:
                return functional_call(module, state, x)  # type: ignore[no-any-return]
            x_centre, x_spread, y_centre, y_spread = scales
            scaled: Tensor = functional_call(module, state, (x - x_centre) / x_spread)
            return y_centre + y_spread * scaled

        if not self.is_batched:
            state = {name: rows[0] for name, rows in self.state.items()}
            return outputs(state, tuple(part[0] for part in self.scales))[None]
        at_once = max(1, _ROWS_AT_ONCE * x.shape[-1] // max(1, x.numel()))  # models
        is_one_chunk = x.device.type != "cpu" or at_once >= len(self.members)
        if is_one_chunk and self.is_plain and x.ndim == 2:
            x_centre, x_spread, y_centre, y_spread = (part[:, None] for part in self.scales)
            y = (x - x_centre) / x_spread
            for name, layer in self.layers:  # `vmap` would take longer than the products
                if isinstance(layer, nn.Linear):
                    weight, bias = (self.parameters[f"{name}.{n}"] for n in ("weight", "bias"))
                    y = torch.baddbmm(bias[:, None], y, weight.mT)
                else:
                    y = layer(y.flatten(0, 1)).unflatten(0, y.shape[:2])
            return y_centre + y_spread * y
        stacked: Callable[..., Tensor] = torch.vmap(
            outputs, chunk_size=None if is_one_chunk else at_once
        )
        return stacked(self.parameters, self.scales)

    def remember(self, is_better: Tensor) -> None:
        """Store the present state of some members as their best."""
        members = self.members[is_better]
        for name, rows in self.state.items():
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
        optimiser.param_groups[0]["params"] = list(self.parameters.values())
        self.scales = tuple(part[going_on] for part in self.scales)

    def best_models(self) -> list[nn.Module]:
        """Return copies of all models, each in its best state."""
        copies = [deepcopy(model) for model in self.models]
        for i, copy in enumerate(copies):  # tied parameters have one name here, several in a model
            copy.load_state_dict({name: rows[i] for name, rows in self.best.items()}, strict=False)
        return copies


def _is_plain(layer: nn.Module) -> bool:
    """Return whether a layer is linear with a bias, or one of PyTorch's without parameters."""
    names = [name for name, _ in (*layer.named_parameters(), *layer.named_children())]
    is_linear = type(layer) is nn.Linear and names == ["weight", "bias"]
    return is_linear or (not names and type(layer).__module__.startswith("torch.nn."))


def can_be_stacked(model: nn.Module) -> bool:
    """Return whether a model has neither buffers nor dropout."""
    has_dropout = any(isinstance(m, nn.modules.dropout._DropoutNd) for m in model.modules())
    return not has_dropout and not any(True for _ in model.buffers())


def as_tensor(values: object, module: nn.Module) -> Tensor:
    """Return numbers in the type and on the device of a module's parameters."""
    first = next(module.parameters())
    return torch.as_tensor(values, dtype=first.dtype, device=first.device)


def train_masked(
    starts: Sequence[Sequence[nn.Module]],
    x: Array,
    criterion: Criterion,
    masks: Masks,
    scales: Scales,
    settings: TrainingSettings,
    *,
    stops: bool,
) -> list[tuple[tuple[nn.Module, ...], int]]:
    """Train equally many models per mask on its instances. Returns them and their mean step."""
    n, features = len(starts[0]), as_tensor(x, starts[0][0])
    of_mask = np.repeat(np.arange(len(masks)), n)
    models, steps = [model for of_one in starts for model in of_one], np.zeros(len(of_mask))
    size = len(models) if can_be_stacked(models[0]) else 1
    with torch.random.fork_rng(devices=[]):
        for i in range(0, len(models), size):
            torch.manual_seed(settings.seed + i % n)
            at, k = slice(i, i + size), of_mask[i : i + size]
            stack = Stack(models[at], tuple(part[k] for part in scales))
            models[at], stopping = _train(stack, features, criterion, masks[k], settings, stops)
            steps[at] = stopping.best_steps
    groups = [slice(i, i + n) for i in range(0, len(models), n)]
    return [(tuple(models[at]), round(float(steps[at].mean()))) for at in groups]


def _train(
    stack: Stack,
    features: Tensor,
    criterion: Criterion,
    masks: Masks,
    settings: TrainingSettings,
    stops: bool,
) -> tuple[list[nn.Module], EarlyStopping]:
    """Train the models of a stack, each on its mask.

    Models that share a call get all features: without batches, validation scores cost nothing. One
    alone gets the features of its mask: batch normalisation would see the others.
    """
    is_in = torch.as_tensor(masks, device=features.device)
    parts = (np.flatnonzero(part) for part in (masks[0], ~masks[0]))
    inside, outside = (torch.as_tensor(part, device=features.device) for part in parts)

    def score(y_hat: Tensor | None) -> Tensor:
        if not stack.is_batched:
            return criterion(stack.predict(features[outside]), outside).mean(dim=-1)
        is_out, rows = ~is_in[stack.members], torch.arange(len(features), device=features.device)
        if y_hat is None or y_hat.shape[1] != len(rows):
            y_hat = stack.predict(features)
        return (criterion(y_hat, rows) * is_out).sum(dim=1) / is_out.sum(dim=1)

    stop = score if stops else None
    if stack.is_batched:
        return run(stack, features, criterion, stop, settings, is_in)
    return run(stack, features[inside], lambda y, at: criterion(y, inside[at]), stop, settings)


def run(
    stack: Stack,
    features: Tensor,
    criterion: Criterion,
    score: Callable[[Tensor | None], Tensor] | None,
    settings: TrainingSettings,
    is_in: Tensor | None = None,
) -> tuple[list[nn.Module], EarlyStopping]:
    """Take steps until every model has stopped, by its `score`. Returns them at their best.

    `is_in` says which instances each model learns from, (models, n), by default all of them. With
    it, `score` is given the predictions of the step. Only the slope of the criterion matters.
    """
    is_fused = features.device.type in ("cpu", "cuda")  # one call for all parameters
    optimiser = torch.optim.Adam(
        stack.parameters.values(), lr=settings.learning_rate, fused=is_fused
    )
    batches = _batches(len(features), settings.batch_size, settings.seed, features.device)
    stopping = EarlyStopping(None if score is None else settings.patience, len(stack.members))

    def predicted(index: Tensor) -> Tensor:
        is_whole = len(index) == len(features)  # then in order
        return stack.predict(features if is_whole else features[index], training=True)

    for step, index in enumerate(batches):
        y_hat = None if is_in is None else predicted(index)
        is_scored = score is not None and step % settings.validate_every == 0
        if is_scored or step == settings.n_steps:
            scores = np.zeros(len(stack.members))
            if score is not None:
                with torch.no_grad():
                    scores = score(y_hat).double().cpu().numpy()
            if step == 0 and not np.isfinite(scores).all():
                wanted = "finite before the training"
                got = f"{scores}. Check the labels and what the module predicts"
                raise InvalidInputError(f"Validation losses must be {wanted}, got {got}.")
            going_on = torch.as_tensor(stopping.update(scores, step))
            stack.remember(torch.as_tensor(stopping.is_better))
            if step == settings.n_steps or not going_on.any():
                break
            if not going_on.all():
                stack.keep(going_on, optimiser)
                y_hat = None
        losses = criterion(predicted(index) if y_hat is None else y_hat, index)
        if is_in is not None:
            is_own = is_in[stack.members]
            losses = losses * (is_own if losses.shape == is_own.shape else is_own[:, index])
        for rows in stack.parameters.values():  # `zero_grad` takes longer
            rows.grad = None
        losses.mean(dim=-1).sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return stack.best_models(), stopping


def _batches(n: int, size: int | None, seed: int, device: torch.device) -> Iterator[Tensor]:
    """Yield the instances of each step, by default all, in a new random order in every pass."""
    if size is None or size >= n:
        yield from repeat(torch.arange(n, device=device))
        return
    generator, left = torch.Generator().manual_seed(seed), torch.arange(0)
    while True:
        if len(left) < size:
            left = torch.randperm(n, generator=generator).to(device)  # a GPU waits once a pass
        yield left[:size]
        left = left[size:]
