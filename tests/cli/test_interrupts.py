"""Commands that are interrupted: one line, an exit code, no process left, answers kept."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import psutil
import pytest

from lodl.oracle import Progress

pytestmark = pytest.mark.slow

PROBLEM = """
import time
from pathlib import Path
import numpy as np
import lodl

class PickOne(lodl.LinearProblem):
    sense = "max"

    def solve(self, y_hat, context):
        with Path("calls").open("ab") as file:
            file.write(b"x")
        time.sleep(0.01)
        return np.eye(len(y_hat))[np.argmax(y_hat)]
"""
FIT = [
    "fit",
    "mine:PickOne",
    "--features=x.npy",
    "--labels=y.npy",
    "--out=model",
    "--n-samples=400",
]
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.fixture
def start(tmp_path):
    """Starts `lodl ...` in a session of its own, as a shell's job."""
    (tmp_path / "mine.py").write_text(PROBLEM)
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.random((20, 2)))
    np.save(tmp_path / "y.npy", rng.random((20, 3)))
    (tmp_path / "calls").touch()
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "lodl.cli", *arguments, "--store=store"],
            cwd=tmp_path,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A test run in the background of a shell hands down that Ctrl-C is ignored.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def wait_until(condition, process, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def family_of(process):
    return psutil.Process(process.pid).children(recursive=True)


def has_workers(process):
    try:
        return any("popen_loky" in " ".join(child.cmdline()) for child in family_of(process))
    except psutil.NoSuchProcess:  # it ended between the two questions
        return False


def check_end(process, number, family):
    """Check how a process ends after a signal."""
    said, errors = (text.decode() for text in process.communicate(timeout=60))
    assert errors.splitlines()[-1].startswith("Stopped. Finished work is kept")
    assert "Traceback" not in errors
    assert said == ""
    assert process.returncode == CODES[number]
    _, alive = psutil.wait_procs(family, timeout=15)
    assert not alive


@pytest.mark.parametrize("send", [os.kill, os.killpg])
def test_sigterm_ends_the_workers_and_keeps_the_answers(start, tmp_path, send):
    process = start(*FIT, "--n-jobs=2")
    wait_until(lambda: (tmp_path / "calls").stat().st_size > 200, process)
    family = family_of(process)
    send(process.pid, signal.SIGTERM)
    check_end(process, signal.SIGTERM, family)
    assert Progress.read(tmp_path / "store").n_answers > 0


def test_ctrl_c_while_workers_start_leaves_no_process(start):
    process = start(*FIT, "--n-jobs=2")
    wait_until(lambda: has_workers(process), process)
    family = family_of(process)
    os.killpg(process.pid, signal.SIGINT)
    check_end(process, signal.SIGINT, family)


def test_a_signal_during_a_call_in_this_process_is_not_a_failure_of_the_call(start, tmp_path):
    process = start(*FIT, "--n-jobs=1", "--on-failure=skip")
    wait_until(lambda: (tmp_path / "calls").stat().st_size > 50, process)
    os.kill(process.pid, signal.SIGTERM)
    check_end(process, signal.SIGTERM, [])
