"""Measures what sampling, fitting and training take in a domain."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from lodl._threads import one_torch_thread
from lodl.benchmarks._initialisations import initialisations
from lodl.benchmarks._memory import keep_freed_memory
from lodl.benchmarks._methods import METHODS, Method, Task
from lodl.benchmarks._setup import Setup
from lodl.benchmarks.surrogates import DecisionLoss
from lodl.domains import Domain
from lodl.fitting import fit
from lodl.losses import ConvexDirectedQuadratic, LearnedLoss
from lodl.oracle import OracleSamples, evaluate
from lodl.training.torch import predict

LODL = "ConvexDirectedQuadratic"
"""The method that stands for learned losses."""

TRAINED = ("2-stage", "DFL", LODL)
_FAMILY = ConvexDirectedQuadratic()
_N_PASSES = 9
_N_WARM_UP = 50


@dataclass(frozen=True)
class PreparationCosts:
    """Seconds of what learned losses need before training, on a number of cores, by the clock."""

    cores: int
    sampling: float
    fitting: float

    @property
    def seconds(self) -> float:
        """Both together."""
        return self.sampling + self.fitting


@dataclass(frozen=True)
class UnitCosts:
    """Seconds of one pass, by the processor.

    Attributes:
        surrogate_forward: Of the surrogate's decision and its worth, per instance of a batch as
            large as those of the training (the paper's T_O of DFL).
        surrogate_backward: Of its gradient, likewise (T'_O).
        learned_loss: Of a learned loss and its gradient by its own parameters, per sample: a step
            of a fit by gradient descent (T_LODL).
    """

    surrogate_forward: float
    surrogate_backward: float
    learned_loss: float


@dataclass(frozen=True)
class DomainCosts:
    """What was measured in a domain.

    Attributes:
        preparation: On each number of cores, the first of which is 1.
        training: Seconds of one model, by method and by the processor: steps follow one another, so
            it has one core.
        units: Of single passes.
    """

    preparation: tuple[PreparationCosts, ...]
    training: dict[str, float]
    units: UnitCosts


@one_torch_thread()
def measure_domain(
    setup: Setup, *, n_samples: int, n_steps: int, cores: Sequence[int]
) -> DomainCosts:
    """Measures a domain of seed 0, with the memory that workers of experiments have."""
    keep_freed_memory()
    domain = setup.build(0)
    preparation = []
    for n_cores in cores:
        _sample(domain, setup, _N_WARM_UP, n_cores)  # workers load the package
        started = time.perf_counter()
        samples = _sample(domain, setup, n_samples, n_cores)
        sampled = time.perf_counter()
        loss = fit(samples, _FAMILY, n_jobs=n_cores)
        fitted = time.perf_counter() - sampled
        preparation.append(PreparationCosts(n_cores, sampled - started, fitted))
    # The only looks at validation data are the first and the last: the steps are what counts.
    training = replace(setup.training, n_steps=n_steps, validate_every=n_steps, patience=n_steps)
    with tempfile.TemporaryDirectory() as folder:
        loss_path = Path(folder) / "loss.safetensors"
        replace(loss, provenance={**loss.provenance, "seconds_fitting": 0.0}).save(loss_path)
        task = Task(domain, setup.surrogate, training, 1, samples, loss_path)
        seconds = {name: _training_seconds(METHODS[name], task) for name in TRAINED}
    return DomainCosts(tuple(preparation), seconds, _measure_passes(domain, setup, loss, n_samples))


def trained_at_once(domain: Domain, setup: Setup) -> int:
    """Returns the number of instances in a step of training."""
    n_train = len(domain.splits.train.y)
    return min(setup.training.batch_size or n_train, n_train)


def _sample(domain: Domain, setup: Setup, n_samples: int, n_cores: int) -> OracleSamples:
    part = domain.splits.train_and_validation
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


def _measure_passes(domain: Domain, setup: Setup, loss: LearnedLoss, n_samples: int) -> UnitCosts:
    """Measures a batch through the surrogate, and one instance's samples through its loss."""
    part, n = domain.splits.train, trained_at_once(domain, setup)
    y = torch.as_tensor(part.y[:n], dtype=torch.get_default_dtype())
    context = None if part.context is None else torch.as_tensor(part.context[:n], dtype=y.dtype)
    y_hat = torch.as_tensor(predict(initialisations(domain, 1), part.x[:n]), dtype=y.dtype)
    through_surrogate = DecisionLoss(setup.surrogate)
    forward, backward = _pass(lambda y_hat: through_surrogate(y_hat, y, context).sum(), y_hat)
    return UnitCosts(
        surrogate_forward=forward / n,
        surrogate_backward=backward / n,
        learned_loss=_fit_step_seconds(loss, n_samples) / n_samples,
    )


def _fit_step_seconds(loss: LearnedLoss, n_samples: int) -> float:
    """Measures a learned loss of one instance and its gradient by the parameters."""
    phi = {name: torch.from_numpy(rows) for name, rows in loss.rows([0]).phi.items()}
    generator = torch.Generator().manual_seed(0)
    d = torch.randn((1, n_samples, loss.dim), dtype=torch.float64, generator=generator)

    def value(*parameters: Tensor) -> Tensor:
        losses: Tensor = _FAMILY.value(dict(zip(phi, parameters, strict=True)), d)
        return losses.sum()

    return sum(_pass(value, *phi.values()))


def _pass(loss: Callable[..., Tensor], *tensors: Tensor) -> tuple[float, float]:
    """Returns the median seconds of the loss and of its gradient, by the processor."""
    times = []
    for _ in range(_N_PASSES):
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        started = time.process_time()
        value = loss(*leaves)
        reached = time.process_time()
        value.backward()  # type: ignore[no-untyped-call]
        times.append((reached - started, time.process_time() - reached))
    forward, backward = zip(*times, strict=True)
    return median(forward), median(backward)
