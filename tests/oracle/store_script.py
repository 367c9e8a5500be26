# ruff: noqa: T201 - what it prints is what a test reads
"""What tests of stores do in a process of its own.

python store_script.py cvxpy STORE        samples with a model; prints how many calls it took
python store_script.py read_only FOLDER   fills a store, mounts it read-only, reads it
python store_script.py full FOLDER        fills a disk, makes room, goes on
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from lodl.errors import StoreError
from lodl.oracle import _run, _store, sample
from lodl.problems import Problem
from lodl.samplers import AllPerturbed

Y = np.random.default_rng(0).normal(size=(200, 20))
_run._TASK_SECONDS, _store._SELDOM = 0.01, 0.0  # many files
ARGUMENTS = {"sampler": AllPerturbed(), "n_samples": 100, "progress": False}


class Aim(Problem):
    """Aims at the label."""

    sense = "min"
    n_calls = 0

    def solve(self, y_hat, context):
        self.n_calls += 1
        return y_hat

    def objective(self, z, y, context):
        return float(((z - y) ** 2).sum())


def regrets(store, y=Y, oracle=None):
    samples = sample(oracle or Aim(), y, store=store, **ARGUMENTS)
    return [answers.regret.tobytes() for answers in samples]


def cvxpy(store):
    import cvxpy as cp

    class Portfolio(Problem):
        """A model that is built once."""

        sense = "max"

        def __init__(self):
            self.n_calls = 0
            self.gain, self.z = cp.Parameter(3), cp.Variable(3, nonneg=True)
            utility = self.gain @ self.z - cp.sum_squares(self.z)
            self.model = cp.Problem(cp.Maximize(utility), [cp.sum(self.z) <= 1])

        def solve(self, y_hat, context):
            self.n_calls += 1
            self.gain.value = y_hat
            self.model.solve(solver=cp.CLARABEL)
            return self.z.value

        def objective(self, z, y, context):
            return float(y @ z - z @ z)

    for _ in range(2):
        child = os.fork()
        if child == 0:
            problem = Portfolio()
            sample(problem, Y[:3, :3], sampler=AllPerturbed(), n_samples=5, store=store)
            print(problem.n_calls, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        cp.Variable(3)  # so that the next model has other names inside


def read_only(folder):
    expected = regrets(folder / "store")
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    print("same" if regrets(folder / "store") == expected else "different")
    try:
        regrets(folder / "store", Y + 1)
    except StoreError as error:
        print("StoreError:", "read-only" if "ead-only" in str(error) else error)


def full(folder):
    oracle, store = Aim(), folder / "store"
    try:
        regrets(store, oracle=oracle)
    except StoreError as error:
        print("StoreError:", "no space" if "No space left" in str(error) else error)
    print("drafts left" if list(store.glob(".*")) else "nothing half done")
    subprocess.run(["mount", "-o", "remount,size=8m", folder], check=True)
    again = Aim()
    print("same" if regrets(store, oracle=again) == regrets(None) else "different")
    print("fewer" if again.n_calls < len(Y) * 101 else "all again")


if __name__ == "__main__":
    {"cvxpy": cvxpy, "read_only": read_only, "full": full}[sys.argv[1]](Path(sys.argv[2]))
