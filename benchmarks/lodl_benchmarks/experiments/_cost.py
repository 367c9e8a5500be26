"""Measures what sampling, fitting and training take in a domain."""

import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import joblib
import torch
from torch import Tensor

from lodl._threads import one_torch_thread
from lodl.domains import Domain
from lodl.losses import LearnedLoss, fit
from lodl.oracle import Oracle, Samples
from lodl_benchmarks.convex_directed_quadratic import ConvexDirectedQuadratic
from lodl_benchmarks.experiments._setups import SETUPS
from lodl_benchmarks.paper import (
    TRAINED,
    CostFigure,
    CostSettings,
    Measured,
    UnitCosts,
    costs_of_domain,
)
from lodl_benchmarks.runner import (
    METHODS,
    Method,
    Run,
    Setup,
    initialisations,
    keep_freed_memory,
    predict,
    versions,
)
from lodl_benchmarks.surrogates import SurrogateLoss

COST_SCALES = {"quick": (1000, 200), "paper": (5000, 500)}
"""Points per instance and steps of training, by scale."""

_DOMAINS = ("web", "portfolio")
_FAMILY = ConvexDirectedQuadratic(min_weight=1e-3, ridge=0.0)  # as in the committed figure
_N_PASSES = 9
_N_WARM_UP = 50


def cost_settings(scale: tuple[int, int], n_jobs: int) -> CostSettings:
    """Return what to measure: on 1, 2, 4, ... cores, up to what joblib makes of `n_jobs`."""
    most = joblib.effective_n_jobs(n_jobs)
    cores = tuple(2**i for i in range(most.bit_length()))
    return CostSettings(*scale, cores=cores, domains=_DOMAINS, versions=versions())


def cost_figure(settings: CostSettings, setups: Mapping[str, Setup] = SETUPS) -> CostFigure:
    """Measure the domains and return the seconds per model; see `costs_of_domain`."""
    domains = []
    for name in settings.domains:
        setup = setups[name]
        domain = setup.build(0)
        measured = _measure_domain(
            setup,
            n_samples=settings.n_samples,
            n_steps=settings.n_steps,
            cores=settings.cores,
        )
        counts = {
            "N": len(domain.splits.train_and_validation.y),
            "B": _trained_at_once(domain, setup),
            "K": settings.n_samples,
            "T": settings.n_steps,
        }
        domains.append(costs_of_domain(name, setup.title, measured, counts))
    machine = {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine()}
    return CostFigure(settings, machine, tuple(domains))


@one_torch_thread()
def _measure_domain(
    setup: Setup, *, n_samples: int, n_steps: int, cores: Sequence[int]
) -> Measured:
    """Measure a domain of seed 0, with the memory that workers of experiments have."""
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
        preparation.append((n_cores, sampled - started, fitted))
    # The only looks at validation data are the first and the last: the steps are what counts.
    training = replace(setup.training, n_steps=n_steps, validate_every=n_steps, patience=n_steps)
    with tempfile.TemporaryDirectory() as folder:
        loss_path = Path(folder) / "loss.safetensors"
        replace(loss, provenance={**loss.provenance, "seconds_fitting": 0.0}).save(loss_path)
        run = Run(domain, setup.surrogate, training, 1, samples, loss_path)
        seconds = {name: _training_seconds(METHODS[name], run) for name in TRAINED}
    return Measured(tuple(preparation), seconds, _measure_passes(domain, setup, loss, n_samples))


def _trained_at_once(domain: Domain, setup: Setup) -> int:
    """Return the number of instances in a step of training."""
    n_train = len(domain.splits.train.y)
    return min(setup.training.batch_size or n_train, n_train)


def _sample(domain: Domain, setup: Setup, n_samples: int, n_cores: int) -> Samples:
    part = domain.splits.train_and_validation
    oracle = Oracle(domain.problem, n_jobs=n_cores)
    instances = oracle.instances(part.y, part.context, keys=range(len(part.y)))
    return oracle.sample(instances, setup.sampler, n_samples)


def _training_seconds(method: Method, run: Run) -> float:
    method.run(replace(run, settings=replace(run.settings, n_steps=1)))  # torch warms up
    return method.run(run).seconds_training


def _measure_passes(domain: Domain, setup: Setup, loss: LearnedLoss, n_samples: int) -> UnitCosts:
    """Measure a batch through the surrogate, and one instance's samples through its loss."""
    part, n = domain.splits.train, _trained_at_once(domain, setup)
    y = torch.as_tensor(part.y[:n], dtype=torch.get_default_dtype())
    context = None if part.context is None else torch.as_tensor(part.context[:n], dtype=y.dtype)
    y_hat = torch.as_tensor(predict(initialisations(domain, 1), part.x[:n]), dtype=y.dtype)
    through_surrogate = SurrogateLoss(setup.surrogate)
    forward, backward = _pass(lambda y_hat: through_surrogate(y_hat, y, context).sum(), y_hat)
    return UnitCosts(
        surrogate_forward=forward / n,
        surrogate_backward=backward / n,
        learned_loss=_fit_step_seconds(loss, n_samples) / n_samples,
    )


def _fit_step_seconds(loss: LearnedLoss, n_samples: int) -> float:
    """Measure a learned loss of one instance and its gradient by the parameters."""
    phi = {name: torch.from_numpy(rows) for name, rows in loss.subset([0]).phi.items()}
    generator = torch.Generator().manual_seed(0)
    d = torch.randn((1, n_samples, loss.dim), dtype=torch.float64, generator=generator)

    def value(*parameters: Tensor) -> Tensor:
        losses: Tensor = _FAMILY.value(dict(zip(phi, parameters, strict=True)), d)
        return losses.sum()

    return sum(_pass(value, *phi.values()))


def _pass(loss: Callable[..., Tensor], *tensors: Tensor) -> tuple[float, float]:
    """Return the median seconds of the loss and of its gradient, by the processor."""
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
