"""A training step on losses made of decisions, and the size of their files.

    python speed/decision_families.py

The step is that of a linear model, 256 instances a batch, with 50 decisions of 50 numbers each; it
should take at most 3 times one of `ConvexDirectedQuadratic`. A file of 10,000 such instances should
have less than 1.1 GB. Times, on one core, are those of the fastest step: the slower ones wait for
other work of the machine.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from lodl.losses import (
    DecisionHinges,
    DecisionRanking,
    Family,
    FitErrors,
    LearnedLoss,
    load_loss,
)
from lodl.training.torch import LearnedLossModule
from lodl_benchmarks.convex_directed_quadratic import ConvexDirectedQuadratic

N_DECISIONS, DIM, N_FEATURES, BATCH = 50, 50, 10, 256
N_STEPS = 300
FAMILIES = (
    ConvexDirectedQuadratic(),
    DecisionHinges(max_decisions=N_DECISIONS),
    DecisionRanking(max_decisions=N_DECISIONS),
)


def make_loss(family: Family, n_instances: int) -> LearnedLoss:
    rng = np.random.default_rng(0)
    phi: Any = {
        name: rng.random((n_instances, *shape), dtype=np.float32)
        for name, shape in family.parameter_shapes(DIM).items()
    }
    y: Any = rng.random((n_instances, DIM), dtype=np.float32)
    return LearnedLoss(family, y, phi, FitErrors.empty(n_instances), {})


def make_step(family: Family) -> Callable[[], None]:
    criterion = LearnedLossModule(make_loss(family, n_instances=1_000))
    model = torch.nn.Linear(N_FEATURES, DIM)
    optimiser = torch.optim.Adam(model.parameters())
    x = torch.randn(1_000, N_FEATURES)

    def step() -> None:
        index = torch.randint(1_000, (BATCH,))
        optimiser.zero_grad()
        criterion(model(x[index]), index).backward()
        optimiser.step()

    return step


def print_steps() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    steps = {type(family).__name__: make_step(family) for family in FAMILIES}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(N_STEPS):  # in turns, so that a busy machine slows all of them
        for name, step in steps.items():
            start = perf_counter()
            step()
            times[name].append(perf_counter() - start)
    baseline = min(times["ConvexDirectedQuadratic"])
    for name, of_steps in times.items():
        time = min(of_steps)
        print(f"{name:25} {1e3 * time:6.2f} ms a step, {time / baseline:4.1f} times (target 3)")


def print_file(family: Family, n_instances: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "loss.safetensors"
        loss = make_loss(family, n_instances)
        start = perf_counter()
        loss.save(path)
        saved = perf_counter()
        load_loss(path)
        loaded = perf_counter()
        size = path.stat().st_size / 1e9
    print(
        f"{type(family).__name__:25} {n_instances:,} instances: {size:.2f} GB (target 1.1), "
        f"saved in {saved - start:.1f} s, loaded in {loaded - saved:.1f} s"
    )


def main() -> None:
    print(f"{N_DECISIONS} decisions of {DIM} numbers, batches of {BATCH}")
    print_steps()
    print_file(DecisionRanking(max_decisions=N_DECISIONS), n_instances=10_000)


if __name__ == "__main__":
    main()
