"""One training loop for all methods: Adam, batches, early stopping on held-out regret."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor

from lodl._typing import Array
from lodl_benchmarks.peers._evaluator import Index
from lodl_benchmarks.peers._network import Networks

Start: TypeAlias = Literal["random", "least squares"]

_BETAS = (0.9, 0.999)  # Adam's usual parameters
_TINY = 1e-8


@dataclass(frozen=True)
class Settings:
    """Settings of the training of all models."""

    n_steps: int = 300  # the most steps
    look_every: int = 20  # steps between two looks at held-out decisions
    patience: int = 80  # steps without a better look after which training stops
    batch_size: int = 32  # instances per step; fewer where a model has fewer to train on
    # Weight of the past in the running mean of the weights, which is what predicts: the last step
    # of any method is noisy.
    memory: float = 0.95


@dataclass(frozen=True)
class Choice:
    """Parameters that validation decisions select, besides the number of steps."""

    learning_rate: float  # of Adam
    start: Start  # where a linear model begins
    parameter: Any  # the method's main parameter


@dataclass(frozen=True, eq=False)
class Member:
    """One of the models that are trained side by side."""

    train: Index  # the instances it is trained on
    held_out: Index  # those it is stopped by; none to train for all steps
    choice: Choice  # its learning rate, its start, and the method's main parameter
    seed: int  # random seed of its batches


class Criterion(Protocol):
    """The loss of a method, for several models that are trained side by side."""

    def __call__(self, y_hat: Tensor, rows: Tensor, models: Sequence[int], /) -> Tensor:
        """Return the losses of predictions.

        `y_hat` has shape (models, batch, *label_shape); `rows`, the instances they are for, and the
        losses have shape (models, batch). Models that have stopped are left out.
        """


Look: TypeAlias = Callable[[Array, Index], Array]
"""Returns the regrets of held-out predictions, which takes the solver."""


def train(
    networks: Networks,
    x: Array,
    members: Sequence[Member],
    criterion: Criterion,
    *,
    settings: Settings,
    look: Look,
) -> list[int]:
    """Train models, leave each in its best state, and return the step at which that was."""
    features = torch.as_tensor(x)
    adam = _Adam(networks, torch.tensor([member.choice.learning_rate for member in members]))
    batch_size = min([settings.batch_size, *(len(member.train) for member in members)])
    batches = [_Batches(member, batch_size) for member in members]
    watch = _Watch(networks, x, members, settings, look)
    watch(0)
    for step in range(1, settings.n_steps + 1):
        active = watch.active
        rows = torch.as_tensor(np.stack([batch.next() for batch in batches]))
        y_hat = networks.predict(features[rows])
        losses = criterion(y_hat[active], rows[active], active)
        adam.step(step, losses.mean(dim=1).sum())
        watch.follow(step)
        if step % settings.look_every == 0 or step == settings.n_steps:
            watch(step)
            if not watch.active:
                break
    networks.restore(watch.best_state)
    return watch.best_step


class _Adam:
    """Adam (Kingma and Ba, 2015), with a learning rate for each of the models."""

    def __init__(self, networks: Networks, rates: Tensor) -> None:
        self.weights = networks.weights
        self.mean = [torch.zeros_like(rows) for rows in self.weights]
        self.square = [torch.zeros_like(rows) for rows in self.weights]
        self.rates = [rates.reshape(-1, *[1] * (rows.ndim - 1)) for rows in self.weights]

    def step(self, number: int, loss: Tensor) -> None:
        gradients = torch.autograd.grad(loss, self.weights)
        first, second = _BETAS
        scale = np.sqrt(1 - second**number) / (1 - first**number)
        with torch.no_grad():
            state = zip(self.weights, gradients, self.mean, self.square, self.rates, strict=True)
            for rows, gradient, mean, square, rate in state:
                mean.lerp_(gradient, 1 - first)
                square.lerp_(gradient.square(), 1 - second)
                rows.sub_(rate * scale * mean / (square.sqrt() + _TINY))


class _Batches:
    """Draws the instances of a member without replacement, epoch after epoch."""

    def __init__(self, member: Member, batch_size: int) -> None:
        self._rng = np.random.default_rng(member.seed)
        self._rows, self._size = member.train, batch_size
        self._left = np.empty(0, dtype=np.intp)

    def next(self) -> Index:
        """Return the next batch; what is left of an epoch and too small for one is left out."""
        if len(self._left) < self._size:
            self._left = self._rng.permutation(self._rows)
        batch, self._left = self._left[: self._size], self._left[self._size :]
        return batch


class _Watch:
    """Looks at held-out decisions, keeps the best state of each member, and stops it in time."""

    def __init__(
        self,
        networks: Networks,
        x: Array,
        members: Sequence[Member],
        settings: Settings,
        look: Look,
    ) -> None:
        self.networks, self.x, self.members = networks, x, members
        self.settings, self.look = settings, look
        self.mean, self.best_state = networks.state(), networks.state()
        self.best_step = [0] * len(members)
        self.best = [np.inf] * len(members)
        self.active = list(range(len(members)))

    def follow(self, step: int) -> None:
        """Bring the running mean of the weights up to date."""
        share = max(1 - self.settings.memory, 1 / (step + 1))
        with torch.no_grad():
            for mean, now in zip(self.mean, self.networks.weights, strict=True):
                mean.lerp_(now, share)

    def __call__(self, step: int) -> None:
        regrets = self._regrets()
        for m, regret in zip(self.active.copy(), regrets, strict=True):
            if regret < self.best[m] or len(self.members[m].held_out) == 0:
                self.best[m], self.best_step[m] = regret, step
                for kept, now in zip(self.best_state, self.mean, strict=True):
                    kept[m] = now[m]
            elif step - self.best_step[m] >= self.settings.patience:
                self.active.remove(m)

    def _regrets(self) -> list[float]:
        """Return the mean held-out regret of the models that have not stopped, in one look."""
        y_hat = self.networks.predict_all(self.x, self.mean)
        parts = [self.members[m].held_out for m in self.active]
        rows = np.concatenate(parts)
        if len(rows) == 0:
            return [0.0] * len(parts)
        regrets = self.look(
            np.concatenate([y_hat[m, part] for m, part in zip(self.active, parts, strict=True)]),
            rows,
        )
        ends = np.cumsum([len(part) for part in parts])[:-1]
        return [float(regret.mean()) for regret in np.split(regrets, ends)]
