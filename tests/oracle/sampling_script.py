"""A sampling run in a process of its own, for tests that kill or interrupt it.

python sampling_script.py run FOLDER N_JOBS [STORE]  one run; writes FOLDER/regrets-PID.npy
python sampling_script.py kill FOLDER N_KILLS        runs that are killed, then one that finishes
python sampling_script.py fork FOLDER                runs on two workers, here and in two forks
"""

import os
import random
import signal
import sys
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from lodl.oracle import Oracle, _run, _store
from lodl.problems import Problem
from lodl.samplers import AllPerturbed

Y = np.random.default_rng(0).normal(size=(8, 5))
N_SAMPLES = 200


class Slow(Problem):
    """Takes a millisecond and leaves a byte in a file per call."""

    sense = "min"
    seconds = 0.001

    def __init__(self, calls_file):
        self.calls_file = calls_file

    def solve(self, y_hat, context):
        # No object of Python's, which would complain if Ctrl-C came before it is closed.
        file = os.open(self.calls_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, b"x")
        os.close(file)
        time.sleep(self.seconds)
        return np.sinh(y_hat)

    def objective(self, z, y, context):
        return float(((z - np.sinh(y)) ** 2).sum())


def regrets(problem, store, n_jobs=1):
    options = {"n_jobs": n_jobs}
    arguments = {"sampler": AllPerturbed(), "n_samples": N_SAMPLES}
    samples = Oracle(problem, store=store or None, **options).sample(Y, **arguments)
    return np.array([answers.regret for answers in samples])


def run(folder, n_jobs, store="store"):
    found = regrets(Slow(str(folder / "calls")), store and folder / store, int(n_jobs))
    np.save(folder / f"regrets-{os.getpid()}.npy", found)


def kill(folder, n_kills):
    moments = random.Random(n_kills)
    Oracle(Slow(os.devnull)).sample(Y[:1], AllPerturbed(), 1)  # imports what it needs
    for _ in range(int(n_kills)):
        child = os.fork()
        if child == 0:
            run(folder, 1)
            os._exit(0)
        time.sleep(moments.uniform(0.0, 0.1))
        os.kill(child, signal.SIGKILL)
        if os.waitpid(child, 0)[1] != signal.SIGKILL:
            sys.exit("a run ended before it was killed: the test shows nothing")
    run(folder, 1)


def fork(folder):
    Slow.seconds = 0.0
    run(folder, 2, "")
    child = os.fork()
    if child == 0:
        run(folder, 2, "")
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("the run of a fork failed")
    process = get_context("fork").Process(target=run, args=(folder, 2, ""))
    process.start()
    process.join()
    run(folder, 2, "")  # the workers of the parent are as they were
    sys.exit(process.exitcode)


if __name__ == "__main__":
    _run._TASK_SECONDS, _store._WRITE_EVERY = (
        0.02,
        0.0,
    )  # many tasks and transactions, as a long run has
    commands: dict[str, Any] = {"run": run, "kill": kill, "fork": fork}
    commands[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
