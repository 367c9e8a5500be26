"""Memory of all processes together, and the size of the store, for ten million oracle calls.

    python speed/sampling_memory.py

10,000 labels of 50 items, 1,000 samples each, the best item is chosen, two worker processes. The
run is a child process; memory is the sum of PSS (shared pages counted once) over it and its
workers.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep

import numpy as np
import psutil

N, K, DIM = 10_000, 1_000, 50


def sample(folder: str) -> None:
    from lodl.domains import TopK
    from lodl.oracle import Oracle
    from lodl.samplers import AllPerturbed

    y = np.random.default_rng(0).normal(size=(N, DIM))
    Oracle(TopK(), n_jobs=2, store=f"{folder}/store.db").sample(y, AllPerturbed(), K)


def memory(process: psutil.Process) -> int:
    total = 0
    for member in [process, *process.children(recursive=True)]:
        try:
            total += member.memory_full_info().pss
        except psutil.Error:  # it has just ended
            continue
    return total


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        child = subprocess.Popen([sys.executable, __file__, folder])
        process, peak = psutil.Process(child.pid), 0
        while child.poll() is None:
            peak = max(peak, memory(process))
            sleep(0.05)
        seconds = perf_counter() - start
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
    calls = N * K
    print(f"{calls:,} calls in {seconds:.1f} s ({seconds / calls * 2e6:.2f} us of a worker each)\n")
    print(f"peak memory  {peak / 1e6:8.0f} MB   (target < 1,500 MB)")
    print(f"store        {size / 1e6:8.1f} MB   (target < 200 MB)")
    print(f"             {size / calls:8.2f} bytes a sample")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sample(sys.argv[1])
    else:
        main()
