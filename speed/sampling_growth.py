"""How time grows with instances and samples.

    python speed/sampling_growth.py

The best of 50 items is chosen, one worker, answers in a store; seconds of processor time. The slope
is that of log(seconds) over log(size): 1 is linear.
"""

import tempfile
from time import process_time

import numpy as np

from lodl.domains import TopK
from lodl.oracle import Oracle
from lodl.samplers import AllPerturbed

SIZES = {
    "instances": [(500, 1_000), (2_000, 1_000), (8_000, 1_000)],
    "samples": [(500, 1_000), (500, 4_000), (500, 16_000)],
}


def run_seconds(n: int, k: int) -> float:
    y = np.random.default_rng(0).normal(size=(n, 50))
    with tempfile.TemporaryDirectory() as folder:
        start = process_time()
        Oracle(TopK(), store=f"{folder}/store.db").sample(y, AllPerturbed(), k)
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


if __name__ == "__main__":
    print_growth()
