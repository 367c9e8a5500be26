"""How time grows with instances and samples, and the unit costs of the engine.

    python speed/sampling_growth.py

The best of 50 items is chosen, one worker, outcomes in a store; seconds of processor time. The
slope is that of log(seconds) over log(size): 1 is linear. The unit costs are what a plan for a
larger run needs, in wall-clock time.
"""

import pickle
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np
from joblib import Parallel, delayed

from lodl.domains import TopK
from lodl.oracle import evaluate
from lodl.oracle._inputs import check_inputs
from lodl.oracle._layout import Layout
from lodl.oracle._panel import Chunk, Outcomes
from lodl.oracle._store import create_store, open_store
from lodl.oracle._store_header import StoreIdentity
from lodl.samplers import AllPerturbed
from lodl.samplers._sampler import BLOCK_SIZE

SIZES = {
    "instances": [(500, 1_000), (2_000, 1_000), (8_000, 1_000)],
    "samples": [(500, 1_000), (500, 4_000), (500, 16_000)],
}
CHUNK = (260, 1_000)  # about the largest


def run_seconds(n: int, k: int) -> float:
    y = np.random.default_rng(0).normal(size=(n, 50))
    with tempfile.TemporaryDirectory() as folder:
        start = process_time()
        evaluate(TopK(), y, sampler=AllPerturbed(), n_samples=k, store=f"{folder}/samples.zarr")
        return process_time() - start


def print_growth() -> None:
    run_seconds(10, 500)  # imports
    for name, sizes in SIZES.items():
        times = [run_seconds(n, k) for n, k in sizes]
        calls = [n * k for n, k in sizes]
        slope = np.polyfit(np.log(calls), np.log(times), 1)[0]
        cells = "".join(
            f"{f'N={n:,} K={k:,}':>18}{t:7.2f} s" for (n, k), t in zip(sizes, times, strict=True)
        )
        print(f"{name:10}{cells}   slope {slope:.2f} (target about 1)")


def timed(work, repeats: int = 10) -> float:
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    return median(seconds)


def print_unit_costs() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(CHUNK[0], 50))
    inputs = check_inputs(TopK(), y, context=None, sampler=AllPerturbed(), seed=0)
    outcomes = Outcomes(rng.exponential(size=CHUNK), np.ones(CHUNK, dtype=np.uint8))
    identity = StoreIdentity(CHUNK[0], 0, {}, (0.0,))
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/samples.zarr"
        create_store(store, identity, Layout((CHUNK[0], 1), CHUNK), CHUNK[1])
        panel = open_store(store, identity, CHUNK[1]).regret
        rows, cols = slice(0, CHUNK[0]), slice(0, CHUNK[1])
        write = timed(lambda: panel.write(Chunk(rows, cols), outcomes))
        read = timed(lambda: panel.read(rows, cols))
        size = sum(p.stat().st_size for p in Path(store).rglob("*") if p.is_file())
    empty = timed(lambda: list(Parallel(n_jobs=2)(delayed(abs)(i) for i in range(200))), 3) / 200
    draw = timed(lambda: inputs.candidates(0, 0)) / BLOCK_SIZE
    sent = len(pickle.dumps(inputs)) + outcomes.status.size
    print(f"\nUnit costs, a chunk of {CHUNK[0]} x {CHUNK[1]:,} samples of 50 numbers")
    for name, value, unit in (
        ("draw a candidate", draw * 1e6, "us"),
        ("save a chunk (parent)", write * 1e3, "ms"),
        ("read a chunk (parent)", read * 1e3, "ms"),
        ("send an empty task (loky)", empty * 1e3, "ms"),
        ("task sent", sent / 1e6, "MB"),
        ("result sent back", len(pickle.dumps(outcomes)) / 1e6, "MB"),
        ("store, values without repeats", size / outcomes.status.size, "bytes a sample"),
    ):
        print(f"  {name:32}{value:8.2f} {unit}")


if __name__ == "__main__":
    print_growth()
    print_unit_costs()
