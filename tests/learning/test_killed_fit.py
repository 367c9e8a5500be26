"""A fit that is killed goes on where it was."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import os, signal, sys
import numpy as np
import sklearn.linear_model  # before the forks, so that it is imported once
from lodl import DecisionFocusedRegressor, DecisionHinges, LinearProblem, Oracle
from lodl.training.linear import LinearLearner

class Best(LinearProblem):
    sense = "max"

    def solve(self, y_hat, context=None):
        with open(f"{folder}/calls", "ab", buffering=0) as calls:
            calls.write(b".")
            if calls.tell() == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return np.eye(len(y_hat))[np.argmax(y_hat)]


def fit():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 3))
    y = (x @ rng.normal(size=(3, 4))) ** 3 + rng.normal(size=(20, 4))
    model = DecisionFocusedRegressor(
        Oracle(Best(), store=f"{folder}/answers"),
        LinearLearner(n_steps=20),
        families=(DecisionHinges(),),
        n_samples=6,
        n_rounds=4,
    )
    model.fit(x, y)
    np.savez(f"{folder}/model.npz", y_hat=model.predict(x), chosen=model.result_.selected_name)


for folder, n_more in ("whole", 0), ("killed", 100), ("killed", 50), ("killed", 40), ("killed", 0):
    os.makedirs(folder, exist_ok=True)
    n_before = os.path.getsize(f"{folder}/calls") if os.path.exists(f"{folder}/calls") else 0
    kill_at = n_before + n_more if n_more else -1
    child = os.fork()
    if not child:
        fit()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def n_calls(folder: Path) -> int:
    return (folder / "calls").stat().st_size


def test_a_fit_killed_three_times_ends_with_the_same_model(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, stdout=subprocess.PIPE, check=True, text=True
    )
    assert [int(code) for code in done.stdout.split()] == [0, *3 * [-signal.SIGKILL], 0]
    expected, got = (np.load(folder / "model.npz") for folder in (whole, killed))
    np.testing.assert_array_equal(got["y_hat"], expected["y_hat"])
    assert got["chosen"] == expected["chosen"]
    # A kill loses no more than one question about all instances, here of 4 calls each. Besides,
    # a start asks whether the objective is affine, and whether the store is that of the problem.
    at_start = 15 + 2 * 4
    assert n_calls(killed) <= n_calls(whole) + 3 * (20 * 4 + at_start)
