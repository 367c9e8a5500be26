"""How time and memory of a fit grow with samples, label size and instances.

    python speed/fitting_growth.py

First one instance on one core, with the memory that the fit allocates beside its samples; then many
instances on two workers. The problem chooses the best item; errors are standard normal.
"""

import tracemalloc
from collections.abc import Iterable
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from fitting_samples import DIM, N_SAMPLES, TopOneSamples
from lodl.losses import (
    DirectedQuadratic,
    DirectedWeightedMSE,
    Family,
    Quadratic,
    WeightedMSE,
    fit,
)
from lodl.oracle import Answers
from lodl_benchmarks.convex_directed_quadratic import ConvexDirectedQuadratic

WEIGHTED = [WeightedMSE(), DirectedWeightedMSE()]
QUADRATIC = [Quadratic(), Quadratic(rank=5), DirectedQuadratic(), ConvexDirectedQuadratic()]


def measure(family: Family, n_samples: int, dim: int) -> tuple[float, float]:
    """Return the seconds of a fit and its peak memory in megabytes."""
    rng = np.random.default_rng(0)
    y, d = rng.standard_normal(dim), rng.standard_normal((n_samples, dim))
    regret = y.max() - y[(y + d).argmax(axis=1)]
    start = perf_counter()
    family.fit(Answers(y, y + d, regret))
    seconds = perf_counter() - start
    tracemalloc.start()
    family.fit(Answers(y, y + d, regret))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, peak / 1e6


def print_growth(title: str, families: Iterable[Family], shapes: list[tuple[int, int]]) -> None:
    print(f"\n{title:40}" + "".join(f"{f'K={k:,} D={dim:,}':>20}" for k, dim in shapes))
    for family in families:
        cells = [measure(family, k, dim) for k, dim in shapes]
        print(f"{_name(family):40}" + "".join(f"{s * 1e3:9.0f} ms {mb:5.0f} MB" for s, mb in cells))


def print_instances() -> None:
    print(f"\nInstances, K={N_SAMPLES:,} D={DIM}, two workers")
    fit(TopOneSamples(tuple(range(16))), WeightedMSE(), n_jobs=2, progress=False)  # workers up
    for family in (DirectedWeightedMSE(), ConvexDirectedQuadratic()):
        for n_instances in (50, 100, 200):
            samples = TopOneSamples(tuple(range(n_instances)))
            tracemalloc.start()
            start = perf_counter()
            loss = fit(samples, family, n_jobs=2, progress=False)
            seconds = perf_counter() - start
            peak = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
            size = sum(np.asarray(rows).nbytes for rows in loss.phi.values()) / 1e6
            print(
                f"{_name(family):40} N={n_instances:4} {seconds:7.1f} s, main process "
                f"{peak:5.1f} MB, of which the loss {size:5.1f} MB"
            )


def _name(family: Family) -> str:
    rank = getattr(family, "rank", "")
    return type(family).__name__ + (f"(rank={rank})" if rank != "" else "")


def main() -> None:
    with threadpool_limits(1):
        WEIGHTED[0].fit(
            Answers(np.zeros(1), np.ones((2, 1)), np.ones(2))
        )  # the first fit imports scipy
        by_samples = [(500, 50), (2_000, 50), (5_000, 50), (20_000, 50)]
        print_growth("Samples, one core", WEIGHTED + QUADRATIC, by_samples)
        print_growth("Label", QUADRATIC, [(5_000, 10), (5_000, 50), (5_000, 200)])
        print_growth("Label", WEIGHTED, [(5_000, 10), (5_000, 200), (5_000, 1_000)])
    print_instances()


if __name__ == "__main__":
    main()
