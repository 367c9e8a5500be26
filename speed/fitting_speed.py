"""Time and error of our fits, compared with the paper's recipe.

    python speed/fitting_speed.py

The recipe: one instance after another, 100 Adam steps in torch on the family's own formula, with
torch's default threads and the best learning rate of 0.003, 0.01, 0.03, 0.1 and 0.3. Ours: all
instances on two workers. Both use all samples and have neither floor nor ridge. The sizes are those
of the Linear Model: 400 instances, 5,000 samples, labels of 50 numbers; the problem chooses the
best item. Slow fits are timed on fewer instances and scaled to 400. Run it on an idle machine:
other work slows torch's threads most.
"""

from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
import torch

from fitting_samples import DIM, N_SAMPLES, TopOneSamples
from lodl.losses import (
    DirectedQuadratic,
    DirectedWeightedMSE,
    Family,
    LearnedLoss,
    Quadratic,
    WeightedMSE,
    fit,
)
from lodl_benchmarks.convex_directed_quadratic import ConvexDirectedQuadratic

N_INSTANCES = 400
N_RECIPE = 8  # instances on which the recipe is timed
N_JOBS = 2


@dataclass(frozen=True)
class Row:
    """A family, what to reach, and how the recipe is run on it."""

    family: Family
    target: float
    learning_rate: float
    n_ours: int = N_INSTANCES


ROWS = [
    Row(WeightedMSE(min_weight=0, ridge=0), target=20, learning_rate=0.03),
    Row(DirectedWeightedMSE(min_weight=0, ridge=0), target=20, learning_rate=0.03),
    Row(Quadratic(min_weight=0, ridge=0), target=3, learning_rate=0.01, n_ours=80),
    Row(DirectedQuadratic(min_weight=0), target=3, learning_rate=0.003, n_ours=80),
    Row(ConvexDirectedQuadratic(min_weight=0, ridge=0), target=3, learning_rate=0.03),
]


def recipe(family: Family, samples: TopOneSamples, index: int, learning_rate: float) -> float:
    """Runs the paper's recipe on one instance; returns its mean squared error."""
    drawn = samples[index]
    d = torch.tensor(drawn.y_hat - samples.y[index], dtype=torch.float32)[None]
    regret = torch.tensor(drawn.regret, dtype=torch.float32)[None]
    generator = torch.Generator().manual_seed(0)
    phi = {}
    for name, shape in family.parameter_shapes(DIM).items():
        noise = torch.randn((1, *shape), generator=generator)
        phi[name] = (noise.abs() if name.startswith("w") else noise) / DIM
    phi = {name: torch.zeros_like(v) if name == "floor" else v for name, v in phi.items()}
    learned = [value.requires_grad_() for name, value in phi.items() if name != "floor"]
    adam = torch.optim.Adam(learned, lr=learning_rate)
    for _ in range(100):
        adam.zero_grad()
        (family.value(phi, d) - regret).square().mean().backward()
        adam.step()
        with torch.no_grad():
            for name in phi.keys() & {"w", "w_plus", "w_minus"}:
                phi[name].clamp_(min=0)
    with torch.no_grad():
        return float((family.value(phi, d) - regret).square().mean())


def our_error(loss: LearnedLoss, samples: TopOneSamples, index: int) -> float:
    drawn = samples[index]
    phi = {name: value[index : index + 1] for name, value in loss.phi.items()}
    value = loss.family.value(phi, (drawn.y_hat - samples.y[index])[None])[0]
    return float(np.square(value - drawn.regret).mean())


def compare(row: Row) -> str:
    samples = TopOneSamples(tuple(range(row.n_ours)))
    start = perf_counter()
    loss = fit(samples, row.family, holdout=0, n_jobs=N_JOBS, progress=False)
    ours = (perf_counter() - start) * N_INSTANCES / row.n_ours
    seconds, errors = [], []
    for i in range(N_RECIPE):
        start = perf_counter()
        errors.append(recipe(row.family, samples, i, row.learning_rate))
        seconds.append(perf_counter() - start)
    theirs = median(seconds) * N_INSTANCES
    our_errors = np.array([our_error(loss, samples, i) for i in range(N_RECIPE)])
    n_not_worse = int((our_errors <= np.array(errors) * (1 + 1e-6)).sum())
    return (
        f"{type(row.family).__name__:24} {theirs:8.1f} s {ours:8.1f} s {theirs / ours:7.1f}x "
        f"{row.target:6.0f}x {np.mean(errors):10.4f} {our_errors.mean():10.4f} "
        f"{n_not_worse:5} of {N_RECIPE}"
    )


def main() -> None:
    fit(TopOneSamples(tuple(range(16))), WeightedMSE(), n_jobs=N_JOBS, progress=False)  # workers up
    recipe(WeightedMSE(), TopOneSamples((0,)), 0, 0.1)  # torch up
    print(
        f"{N_INSTANCES} instances, {N_SAMPLES} samples, labels of {DIM}, {N_JOBS} workers; recipe "
        f"on {torch.get_num_threads()} threads, median of {N_RECIPE} instances"
    )
    print(
        f"{'family':24} {'recipe':>10} {'ours':>10} {'ratio':>8} {'target':>7} "
        f"{'mse recipe':>10} {'mse ours':>10}  not worse"
    )
    for row in ROWS:
        print(compare(row), flush=True)


if __name__ == "__main__":
    main()
