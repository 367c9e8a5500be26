"""Measures what sampling, fitting and training take in a domain."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from lodl.baselines.dfl import DecisionLoss
from lodl.domains import Domain
from lodl.experiments._methods import METHODS, Method, Task
from lodl.experiments._setup import Setup
from lodl.fitting import fit
from lodl.losses import ConvexDirectedQuadratic, LearnedLoss
from lodl.oracle import OracleSamples, evaluate
from lodl.threads import one_torch_thread
from lodl.training.torch import LearnedLossModule

LODL = "ConvexDirectedQuadratic"
"""The method that stands for learned losses."""

TRAINED = ("2-stage", "DFL", LODL)
_FAMILY = ConvexDirectedQuadratic()
_N_PASSES = 9
_N_WARM_UP = 50


@dataclass(frozen=True)
class PartCosts:
    """Seconds of each part on a number of cores, by the clock.

    `training` is of one model, by method, and by the processor: its steps follow one another, so it
    has one core.
    """

    cores: int
    sampling: float
    fitting: float
    training: dict[str, float]


@dataclass(frozen=True)
class UnitCosts:
    """Seconds of one core per instance, of one pass.

    Attributes:
        surrogate_forward: Of the surrogate's decision and its worth (the paper's T_O of DFL).
        surrogate_backward: Of its gradient (T'_O).
        learned_loss: Of a learned loss and its gradient (T_LODL).
    """

    surrogate_forward: float
    surrogate_backward: float
    learned_loss: float


@one_torch_thread()
def measure_domain(
    setup: Setup, *, n_samples: int, n_steps: int, cores: Sequence[int]
) -> tuple[list[PartCosts], UnitCosts]:
    """Measures a domain of seed 0: the parts on each number of cores, and single passes."""
    domain = setup.build(0)
    # The only looks at validation data are the first and the last: the steps are what counts.
    training = replace(setup.training, n_steps=n_steps, validate_every=n_steps, patience=n_steps)
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        loss_path = Path(folder) / "loss.safetensors"
        for n_cores in cores:
            _sample(domain, setup, _N_WARM_UP, n_cores)  # workers load the package
            started = time.perf_counter()
            samples = _sample(domain, setup, n_samples, n_cores)
            sampled = time.perf_counter()
            loss = fit(samples, _FAMILY, n_jobs=n_cores)
            fitted = time.perf_counter() - sampled
            replace(loss, provenance={**loss.provenance, "seconds_fitting": fitted}).save(loss_path)
            task = Task(domain, setup.surrogate, training, 1, samples, loss_path)
            seconds = {name: _training_seconds(METHODS[name], task) for name in TRAINED}
            parts.append(PartCosts(n_cores, sampled - started, fitted, seconds))
    return parts, _measure_passes(domain, setup, loss)


def _sample(domain: Domain, setup: Setup, n_samples: int, n_cores: int) -> OracleSamples:
    part = domain.splits.with_losses
    return evaluate(
        domain.problem,
        part.y,
        context=part.context,
        sampler=setup.sampler,
        n_samples=n_samples,
        n_jobs=n_cores,
    )


def _training_seconds(method: Method, task: Task) -> float:
    method.run(replace(task, settings=replace(task.settings, n_steps=1)))  # torch warms up
    return method.run(task).seconds_training


def _measure_passes(domain: Domain, setup: Setup, loss: LearnedLoss) -> UnitCosts:
    """Measures one pass over the training instances, at labels with the sampler's noise."""
    part = domain.splits.train
    y = torch.as_tensor(part.y, dtype=torch.get_default_dtype())
    context = None if part.context is None else torch.as_tensor(part.context, dtype=y.dtype)
    noise = float(setup.sampler.resolve_scale(part.y).mean())
    y_hat = y + noise * torch.randn(y.shape, generator=torch.Generator().manual_seed(0))
    through_surrogate = DecisionLoss(setup.surrogate)
    learned, index = LearnedLossModule(loss, reduction="sum"), torch.arange(len(y))
    forward, backward = _pass(lambda y_hat: through_surrogate(y_hat, y, context).sum(), y_hat)
    return UnitCosts(
        surrogate_forward=forward / len(y),
        surrogate_backward=backward / len(y),
        learned_loss=sum(_pass(lambda y_hat: learned(y_hat, index), y_hat)) / len(y),
    )


def _pass(loss: Callable[[Tensor], Tensor], y_hat: Tensor) -> tuple[float, float]:
    """Returns the median seconds of the loss and of its gradient."""
    times = []
    for _ in range(_N_PASSES):
        leaf = y_hat.clone().requires_grad_()
        started = time.perf_counter()
        value = loss(leaf)
        reached = time.perf_counter()
        value.backward()  # type: ignore[no-untyped-call]
        times.append((reached - started, time.perf_counter() - reached))
    forward, backward = zip(*times, strict=True)
    return median(forward), median(backward)
