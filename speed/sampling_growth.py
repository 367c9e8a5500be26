"""How time grows with instances and samples, and the unit costs of asking.

    python speed/sampling_growth.py

The best of 50 items is chosen, one worker, answers in a store; seconds of processor time. The slope
is that of log(seconds) over log(size): 1 is linear. The unit costs are what a plan for a larger run
needs.
"""

import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np

from lodl.domains import TopK
from lodl.oracle import sample
from lodl.oracle._shard import Shard
from lodl.samplers import AllPerturbed

SIZES = {
    "instances": [(500, 1_000), (2_000, 1_000), (8_000, 1_000)],
    "samples": [(500, 1_000), (500, 4_000), (500, 16_000)],
}
N_ROWS, K = 1_000, 1_000  # about the largest shard


def run_seconds(n: int, k: int) -> float:
    y = np.random.default_rng(0).normal(size=(n, 50))
    with tempfile.TemporaryDirectory() as folder:
        start = process_time()
        sample(TopK(), y, sampler=AllPerturbed(), n_samples=k, store=f"{folder}/store")
        return process_time() - start


def print_growth() -> None:
    run_seconds(10, 500)  # imports
    for name, sizes in SIZES.items():
        times = [run_seconds(n, k) for n, k in sizes]
        slope = np.polyfit(np.log([n * k for n, k in sizes]), np.log(times), 1)[0]
        cells = "".join(
            f"{f'N={n:,} K={k:,}':>18}{t:7.2f} s" for (n, k), t in zip(sizes, times, strict=True)
        )
        print(f"{name:10}{cells}   slope {slope:.2f} (target about 1)")


def timed(work: Callable[[], object], repeats: int = 5) -> float:
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    return median(seconds)


def print_unit_costs() -> None:
    rng = np.random.default_rng(0)
    every, each = np.ones(N_ROWS, dtype=np.int32), np.ones(N_ROWS * K, dtype=np.int32)
    shard = Shard(
        ids=rng.integers(0, 256, size=(N_ROWS, 16), dtype=np.uint8),
        start=0 * every,
        count=K * every,
        n_gradients=0 * every,
        loss=rng.exponential(size=N_ROWS * K),
        status=each.astype(np.uint8),
        decision=-each,
        gradient=np.empty((0, 0)),
    )
    content = shard.to_bytes()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "shard")
        write = timed(lambda: path.write_bytes(shard.to_bytes()))
        read = timed(lambda: Shard.from_bytes(path.read_bytes()))
    print(f"\nUnit costs, a shard of {N_ROWS:,} x {K:,} answers without repeats")
    for name, value, unit in (
        ("save it (parent)", write * 1e3, "ms"),
        ("read it (parent)", read * 1e3, "ms"),
        ("an answer in a store", len(content) / (N_ROWS * K), "bytes"),
        ("answers of one instance sent back", len(pickle.dumps(shard)) / N_ROWS / 1e3, "kB"),
    ):
        print(f"  {name:36}{value:8.2f} {unit}")


if __name__ == "__main__":
    print_growth()
    print_unit_costs()
