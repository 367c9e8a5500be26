"""A fit that is killed goes on where it was."""

import os
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
from lodl import DecisionFocusedRegressor, DecisionHinges, LinearProblem, Oracle
from lodl.training.linear import LinearLearner

folder, kill_at = sys.argv[1], int(sys.argv[2])


class Best(LinearProblem):
    sense = "max"

    def solve(self, y_hat, context=None):
        with open(f"{folder}/calls", "ab", buffering=0) as calls:
            calls.write(b".")
            if calls.tell() == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return np.eye(len(y_hat))[np.argmax(y_hat)]


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
"""


def fit(folder: Path, kill_at: int = -1) -> int:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-c", SCRIPT, str(folder), str(kill_at)]
    return subprocess.run(command, check=False, env=os.environ).returncode


def n_calls(folder: Path) -> int:
    calls = folder / "calls"
    return calls.stat().st_size if calls.exists() else 0


def test_a_fit_killed_three_times_ends_with_the_same_model(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert fit(whole) == 0
    for n_more in (200, 90, 70):
        assert fit(killed, kill_at=n_calls(killed) + n_more) == -signal.SIGKILL
    assert fit(killed) == 0
    expected, got = (np.load(folder / "model.npz") for folder in (whole, killed))
    np.testing.assert_array_equal(got["y_hat"], expected["y_hat"])
    assert got["chosen"] == expected["chosen"]
    # A kill loses no more than one question about all instances, here of 4 calls each. Besides,
    # a start asks whether the objective is affine, and whether the store is that of the problem.
    at_start = 15 + 2 * 4
    assert n_calls(killed) <= n_calls(whole) + 3 * (20 * 4 + at_start)
