"""How an oracle of one millisecond scales: one process, two, and a Dask cluster of two.

    python speed/sampling_workers.py [busy]

An oracle call waits for a millisecond, as for a solver elsewhere, so that other work on the machine
hardly counts; with `busy` it keeps a core for that time, which needs two idle cores. Workers have
loaded the package before the clock starts. Then a problem that holds 10 MB goes to the cluster: it
should travel once to each worker, however many tasks there are.
"""

import sys
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from lodl.oracle import Oracle
from lodl.oracle._workers import Dask
from lodl.problems import Problem
from lodl.samplers import AllPerturbed

N, K, ROUNDS = 20, 400, 3


class Millisecond(Problem):
    """Picks the best item, slowly."""

    sense = "max"

    def __init__(self, is_busy: bool, size: int = 0) -> None:
        self.is_busy = is_busy
        self.ballast = np.random.default_rng(0).bytes(size)

    def solve(self, y_hat: np.ndarray, context: None) -> int:
        end = perf_counter() + 1e-3
        while perf_counter() < end:
            if not self.is_busy:
                sleep(max(end - perf_counter(), 0))
        return int(y_hat.argmax())

    def objective(self, z: int, y: np.ndarray, context: None) -> float:
        return float(y[z])


def seconds(y: np.ndarray, **where: Any) -> float:
    start = perf_counter()
    Oracle(Millisecond("busy" in sys.argv), **where).sample(y, AllPerturbed(), K)
    return perf_counter() - start


def megabytes_sent(y: np.ndarray, client: Client) -> float:
    sizes = []
    run = Dask.run

    def counted(self: Dask, function: Any, *arguments: Any) -> Any:
        sizes.append(sum(len(one) for one in arguments if isinstance(one, bytes)))
        return run(self, function, *arguments)

    Dask.run = counted  # type: ignore[method-assign]
    try:
        problem = Millisecond(is_busy=False, size=10_000_000)
        Oracle(problem, executor=client).sample(y, AllPerturbed(), K)
    finally:
        Dask.run = run  # type: ignore[method-assign]
    print(f"\na problem of 10 MB, {len(sizes)} tasks: {sum(sizes) / 1e6:.0f} MB sent to 2 workers")
    return sum(sizes) / 1e6


def main() -> None:
    y = np.random.default_rng(0).normal(size=(N, 10))
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(processes=True, **options) as cluster, Client(cluster) as client:
        engines = {"1": {"n_jobs": 1}, "2": {"n_jobs": 2}, "Dask": {"executor": client}}
        times: dict[str, list[float]] = {name: [] for name in engines}
        for where in engines.values():
            seconds(y[:4], **where)
        for _ in range(ROUNDS):
            for name, where in engines.items():
                times[name].append(seconds(y, **where))
        one, two, on_dask = (median(column) for column in times.values())
        print(f"{N * K:,} calls of 1 ms, median of {ROUNDS} rounds\n")
        print(f"1 process        {one:7.2f} s")
        print(f"2 processes      {two:7.2f} s   {one / two:.2f} x faster (target >= 1.8)")
        print(f"Dask, 2 workers  {on_dask:7.2f} s   {on_dask / two:.2f} of loky  (target <= 1.1)")
        megabytes_sent(y, client)


if __name__ == "__main__":
    main()
