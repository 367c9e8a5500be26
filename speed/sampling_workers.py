"""How an oracle of one millisecond scales: one process, two, and a Dask cluster of two.

    python speed/sampling_workers.py [busy]

An oracle call waits for a millisecond, as for a solver elsewhere, so that other work on the machine
hardly counts; with `busy` it keeps a core for that time, which needs two idle cores. Workers have
loaded the package before the clock starts.
"""

import contextlib
import sys
from collections.abc import Iterator
from statistics import median
from time import perf_counter, sleep

import joblib
import numpy as np
from distributed import Client, LocalCluster

from lodl.oracle import evaluate
from lodl.problems import Problem
from lodl.samplers import AllPerturbed

N, K, ROUNDS = 20, 400, 3


class Millisecond(Problem):
    """Picks the best item, slowly."""

    sense = "max"

    def __init__(self, is_busy: bool) -> None:
        self.is_busy = is_busy

    def solve(self, y_hat: np.ndarray, context: None) -> int:
        end = perf_counter() + 1e-3
        while perf_counter() < end:
            if not self.is_busy:
                sleep(max(end - perf_counter(), 0))
        return int(y_hat.argmax())

    def objective(self, z: int, y: np.ndarray, context: None) -> float:
        return float(y[z])


@contextlib.contextmanager
def one_process() -> Iterator[None]:
    with joblib.parallel_config(n_jobs=1):
        yield


@contextlib.contextmanager
def two_processes() -> Iterator[None]:
    with joblib.parallel_config(backend="loky", n_jobs=2):
        yield


@contextlib.contextmanager
def dask() -> Iterator[None]:
    with joblib.parallel_config(backend="dask"):
        yield


def seconds(y: np.ndarray) -> float:
    start = perf_counter()
    evaluate(Millisecond("busy" in sys.argv), y, sampler=AllPerturbed(), n_samples=K)
    return perf_counter() - start


def main() -> None:
    y = np.random.default_rng(0).normal(size=(N, 10))
    engines = {"1 process": one_process, "2 processes": two_processes, "Dask, 2 workers": dask}
    times: dict[str, list[float]] = {name: [] for name in engines}
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(processes=True, **options) as cluster, Client(cluster):
        for engine in engines.values():
            with engine():
                seconds(y[:4])
        for _ in range(ROUNDS):
            for name, engine in engines.items():
                with engine():
                    times[name].append(seconds(y))
    one, two, on_dask = (median(column) for column in times.values())
    print(f"{N * K:,} calls of 1 ms, median of {ROUNDS} rounds\n")
    print(f"1 process        {one:7.2f} s")
    print(f"2 processes      {two:7.2f} s   {one / two:.2f} x faster (target >= 1.8)")
    print(f"Dask, 2 workers  {on_dask:7.2f} s   {on_dask / two:.2f} of loky  (target <= 1.1)")


if __name__ == "__main__":
    main()
