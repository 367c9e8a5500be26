# ruff: noqa: T201 - what it prints is what a test reads
"""What tests of stores do in a process of its own.

python store_script.py cvxpy STORE        samples with a model; prints how many calls it took
python store_script.py keep STORE         ends while samples of a store are in use
python store_script.py fork_file STORE    forks while a store is open, and uses it on both sides
python store_script.py fork_memory STORE  does so with a store in memory
python store_script.py read_only FOLDER   fills a store, mounts it read-only, reads it
python store_script.py read_only_log FOLDER  does so after a kill, which leaves a log
python store_script.py full FOLDER        fills a disk, makes room, goes on
"""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from lodl.errors import StoreError
from lodl.oracle import Oracle, Samples, _run, _store
from lodl.problems import Problem
from lodl.samplers import AllPerturbed

Y = np.random.default_rng(0).normal(size=(200, 20))
_run._TASK_SECONDS, _store._WRITE_EVERY = 0.01, 0.0  # many transactions
KEPT: list[Samples] = []  # until the very end
ARGUMENTS: Any = {"sampler": AllPerturbed(), "n_samples": 100}


class Aim(Problem):
    """Aims at the label."""

    sense = "min"
    n_calls = 0

    def solve(self, y_hat, context):
        self.n_calls += 1
        return y_hat

    def objective(self, z, y, context):
        return float(((z - y) ** 2).sum())


def regrets(store, y=Y, solver=None):
    samples = Oracle(solver or Aim(), store=store).sample(y, **ARGUMENTS)
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
            Oracle(problem, store=store).sample(Y[:3, :3], AllPerturbed(), 5)
            print(problem.n_calls, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        cp.Variable(3)  # so that the next model has other names inside


def keep(store):
    KEPT.append(Oracle(Aim(), store=store).sample(Y[:5], **ARGUMENTS))
    assert KEPT[0][0].regret.shape == (100,)


def fork_file(store):
    _fork(Oracle(Aim(), store=store, progress=False))


def fork_memory(store):
    _fork(Oracle(Aim(), progress=False))


def _fork(oracle):
    """Use an oracle before, in and after a fork whose process ends in the usual way."""
    sampler = AllPerturbed(1.0)
    expected = _regrets(Oracle(Aim(), progress=False).sample(Y[:20], sampler, 20))
    samples = oracle.sample(Y[:5], sampler, 20)
    assert _regrets(samples) == expected[:5]  # the file is open now
    child = os.fork()
    rows = slice(5, 15) if child == 0 else slice(10, 20)
    found = _regrets(oracle.sample(Y[rows], sampler, 20)) + _regrets(samples)
    told = "same\n" if found == expected[rows] + expected[:5] else "different\n"
    os.write(1, told.encode())  # at once, as both processes write
    if child:
        assert os.waitpid(child, 0)[1] == 0
        found = _regrets(oracle.sample(Y[:20], sampler, 20))
        print("same" if found == expected else "different")


def _regrets(samples):
    return [answers.regret.tobytes() for answers in samples]


def _remount(folder, options):
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)


def read_only(folder):
    store = folder / "store.db"
    expected = regrets(store)
    _remount(folder, "ro")
    print("same" if regrets(store) == expected else "different")
    try:
        regrets(store, Y + 1)
    except StoreError as error:
        print("StoreError:", "read-only" if "readonly" in str(error) else error)
    print("only the store" if list(folder.iterdir()) == [store] else list(folder.iterdir()))


def read_only_log(folder):
    store = folder / "store.db"
    child = os.fork()
    if child == 0:
        Aim.solve = _killed_in_the_end  # type: ignore[method-assign]
        regrets(store)
    os.waitpid(child, 0)
    (folder / "store.db-shm").unlink()
    assert (folder / "store.db-wal").stat().st_size > 0
    _remount(folder, "ro")
    try:
        regrets(store)
    except StoreError as error:
        print("StoreError:", "copy" if "Copy it, with its -wal file" in str(error) else error)
    _remount(folder, "rw")
    print("same" if regrets(store) == regrets(None) else "different")


def _killed_in_the_end(self, y_hat, context):
    self.n_calls += 1
    if self.n_calls > 15_000:
        os.kill(os.getpid(), signal.SIGKILL)
    return y_hat


def full(folder):
    solver, store = Aim(), folder / "store.db"
    try:
        regrets(store, solver=solver)
    except StoreError as error:
        print("StoreError:", "no space" if "disk is full" in str(error) else error)
    _remount(folder, "size=8m")
    for path in folder.iterdir():  # with the log: a check must not mend it
        shutil.copy(path, folder / f"copy-{path.name}")
    print(sqlite3.connect(folder / "copy-store.db").execute("PRAGMA integrity_check").fetchone()[0])
    again = Aim()
    print("same" if regrets(store, solver=again) == regrets(None) else "different")
    print("fewer" if again.n_calls < len(Y) * 101 else "all again")


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
