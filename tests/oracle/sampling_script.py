"""A sampling run in a process of its own, for tests that kill it.

python sampling_script.py run FOLDER N_JOBS      one run; writes FOLDER/regrets.npy
python sampling_script.py kill FOLDER N_KILLS    runs that are killed, then one that finishes
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
import zarr  # noqa: F401 - loaded before forking, so that children start quickly

from lodl.oracle import _layout, evaluate
from lodl.problems import Problem
from lodl.samplers import AllPerturbed

N_INSTANCES, N_SAMPLES = 8, 400
_layout._SHORTEST = 0.03  # a run of a few seconds in many chunks, as a long one has


class Slow(Problem):
    """Takes a millisecond and leaves a byte in a file per call."""

    sense = "max"

    def __init__(self, calls_file):
        self.calls_file = calls_file

    def solve(self, y_hat, context):
        with Path(self.calls_file).open("ab") as file:
            file.write(b"x")
        time.sleep(0.001)
        return y_hat - y_hat.mean()

    def objective(self, z, y, context):
        return float(z @ y)


def run(folder, n_jobs):
    y = np.random.default_rng(0).normal(size=(N_INSTANCES, 5))
    samples = evaluate(
        Slow(str(folder / "calls")),
        y,
        sampler=AllPerturbed(),
        n_samples=N_SAMPLES,
        n_jobs=n_jobs,
        store=folder / "samples.zarr",
    )
    np.save(folder / f"regrets-{os.getpid()}.npy", [instance.regret for instance in samples])


def kill(folder, n_kills):
    moments = random.Random(n_kills)
    for _ in range(n_kills):
        child = os.fork()
        if child == 0:
            run(folder, 1)
            os._exit(0)
        time.sleep(moments.uniform(0.0, 0.2))
        os.kill(child, signal.SIGKILL)
        if os.waitpid(child, 0)[1] != signal.SIGKILL:
            sys.exit("a run ended before it was killed: the test shows nothing")
    run(folder, 1)


if __name__ == "__main__":
    {"run": run, "kill": kill}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
