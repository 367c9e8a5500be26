"""Opening a loss file and reading a mini-batch, against reading all of it.

    python speed/loss_file.py

A mapped loss should open, and give a mini-batch, in a time and a memory that do not grow with the
number of instances. Times are medians; "batch" is new rows, checksums included.
"""

import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from lodl.losses import FitErrors, LearnedLoss, WeightedMSE, load_loss

DIM = 20
BATCH = 256
SIZES = (1_000, 10_000, 100_000, 1_000_000)
REPEATS = 7


def make_loss(n_instances: int) -> LearnedLoss:
    rng = np.random.default_rng(0)
    figures = [rng.random(n_instances) for _ in range(5)]
    counts = [np.full(n_instances, 700), np.full(n_instances, 300)]
    errors = FitErrors(*figures, *counts, status=np.zeros(n_instances, np.int8))
    y, w = rng.random((2, n_instances, DIM))
    return LearnedLoss(WeightedMSE(), y, {"w": w}, errors, {})


def milliseconds(function: Callable[[], object]) -> float:
    start = perf_counter()
    function()
    return 1e3 * (perf_counter() - start)


def peak_megabytes(function: Callable[[], object]) -> float:
    tracemalloc.start()
    function()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def measure(path: Path, n_instances: int) -> tuple[float, ...]:
    rng = np.random.default_rng(1)
    y_hat = np.zeros((BATCH, DIM))

    def batch() -> None:
        load_loss(path).value(y_hat, rng.integers(n_instances, size=BATCH))

    def everything() -> None:
        load_loss(path).rows()

    open_time = median(milliseconds(lambda: load_loss(path)) for _ in range(REPEATS))
    batch_time = median(milliseconds(batch) for _ in range(REPEATS)) - open_time
    full_time = median(milliseconds(everything) for _ in range(3))
    return open_time, batch_time, full_time, peak_megabytes(batch), peak_megabytes(everything)


def main() -> None:
    print(f"WeightedMSE, {DIM} numbers a label, batches of {BATCH}")
    print(
        "instances   file MB   open ms   batch ms   all ms   all/(open+batch)   batch MB   all MB"
    )
    for n_instances in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "loss.safetensors"
            make_loss(n_instances).save(path)
            size = path.stat().st_size / 1e6
            opened, batch, full, batch_mb, full_mb = measure(path, n_instances)
        print(
            f"{n_instances:9,} {size:9.1f} {opened:9.2f} {batch:10.2f} {full:8.1f} "
            f"{full / (opened + batch):18.1f} {batch_mb:10.2f} {full_mb:8.1f}"
        )
    time_ratio, memory_ratio = full / (opened + batch), full_mb / batch_mb
    print(
        f"{SIZES[-1]:,} instances: {time_ratio:.0f} times faster (target 10), "
        f"{memory_ratio:.0f} times less memory (target 100) than reading all"
    )


if __name__ == "__main__":
    main()
