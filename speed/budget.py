"""Seconds and memory of one budget: a model from 10^6 customers of a trial, treatments for 10^7.

    python speed/budget.py [--small]

Each step is a process of its own, whose peak memory is printed; decisions take two threads. The
goals are 10 minutes and 3 GB for training, a minute for decisions. `--small` has a tenth of the
customers.
"""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import lodl
from lodl_benchmarks import budget as room
from lodl_benchmarks.domains import Budget

N_TRIAL, N_CUSTOMERS, ROW_GROUP = 10**6, 10**7, 500_000
SETTING, SEED = "uneven", 1001
TODAY, TOMORROW = 0.4, 0.7  # money per customer


def train(folder: Path, n_trial: int) -> None:
    """Labels of all customers, a loss for 80,000 of them."""
    start = perf_counter()
    data = room.Data(room.SETTINGS[SETTING].draw(SEED, n_trial, "train"))
    lap = perf_counter()
    data.drawn  # noqa: B018 - labels are made on first use
    print(f"  labels {perf_counter() - lap:.0f} s (the trial was drawn in {lap - start:.1f} s)")
    model = room.fit_batches(data)
    print(f"  {model.result_.selected_name}; {model.result_.n_calls:,} solver calls")
    model.save(folder / "model")


def draw(folder: Path, n: int) -> None:
    """Customers, as a warehouse hands them over."""
    parts = (
        room.SETTINGS[SETTING].draw(SEED, ROW_GROUP, f"part {first}").x
        for first in range(0, n, ROW_GROUP)
    )
    room.write_parquet(folder / "x.parquet", parts, "x")


def predict(folder: Path, _: int) -> None:
    """Effects of all customers, which stay on disk."""
    model = lodl.load_model(folder / "model", Budget(room.COSTS))
    blocks = room.parquet_blocks(folder / "x.parquet")
    effects = (room.predict_customers(model, block.read()) for block in blocks)
    room.write_parquet(folder / "effects.parquet", effects, "effect")


def decide(folder: Path, n: int, share: float = TODAY) -> None:
    """The price of a budget, and the treatments that it pays."""
    blocks = room.parquet_blocks(folder / "effects.parquet")
    with ThreadPoolExecutor(2) as executor:
        cut = room.find_cut(blocks, room.COSTS, share * n, executor=executor)
        treatments = room.choose(blocks, room.COSTS, cut, executor=executor)
        room.write_parquet(folder / "treatments.parquet", treatments, "treatment")
    prices = np.array([0, *room.COSTS])
    written = (
        block.read().astype(int) for block in room.parquet_blocks(folder / "treatments.parquet")
    )
    spent = sum(prices[part + 1].sum() for part in written)
    print(f"  price {cut.price:.4f}, spent {spent:,.0f} of {share * n:,.0f}")


def decide_tomorrow(folder: Path, n: int) -> None:
    """Another budget: neither the model nor a solver is called."""
    decide(folder, n, TOMORROW)


STEPS: Mapping[str, Callable[[Path, int], None]] = {
    step.__name__: step for step in (train, draw, predict, decide, decide_tomorrow)
}


def main(parts: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in STEPS:
            n = (N_TRIAL if name == "train" else N_CUSTOMERS) // parts
            print(f"{name}, {n:,} customers", flush=True)
            subprocess.run([sys.executable, __file__, name, folder, str(n)], check=True)


def one(name: str, folder: str, n: str) -> None:
    start = perf_counter()
    STEPS[name](Path(folder), int(n))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    seconds, cpu = perf_counter() - start, process_time()
    print(f"  {seconds:.1f} s, {cpu:.1f} s of processors, peak {peak:.2f} GB", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        one(*sys.argv[1:])
    else:
        main(10 if "--small" in sys.argv else 1)
