"""Signals that reach this process while it makes calls or starts workers."""

import os
import signal
import sys
import threading
import time
from typing import Any

import cloudpickle
import psutil
import pytest

from lodl.oracle import Oracle, Progress
from lodl.oracle._failures import Options
from lodl.oracle._guard import delayed_signals, marked_ctrl_c
from lodl.oracle._workers import choose_workers
from lodl.samplers import AllPerturbed

pytestmark = [pytest.mark.slow, pytest.mark.alone]

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import it


UNLIMITED = Options(None, "raise", 0.1)


def sleep(problem, path):
    path.touch()
    time.sleep(100)


def workers():
    children = psutil.Process().children(recursive=True)
    return [child for child in children if "popen_loky" in " ".join(child.cmdline())]


@pytest.mark.usefixtures("foreground")
def test_ctrl_c_ends_workers_that_are_busy_with_a_function(loop, y, tmp_path):
    path, family = tmp_path / "begun", []

    def press():
        while not path.exists():
            time.sleep(0.01)
        family.extend(workers())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        choose_workers(loop(), 2, None, UNLIMITED).apply(sleep, path, options=UNLIMITED)
    thread.join()
    _, alive = psutil.wait_procs(family, timeout=15)
    assert len(family) == 2
    assert not alive
    samples = Oracle(loop(), n_jobs=2).sample(y, AllPerturbed(), 2)
    assert samples.n_failures == 0


@pytest.fixture
def terminating():
    """A program that exits with code 7 at SIGTERM, as many servers do."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("terminating")
def test_the_exit_of_a_signal_handler_is_not_taken_for_a_failure_of_the_solver(
    loop: Any, y, calls_file, tmp_path
):
    class Terminated(loop):
        def solve(self, y_hat, context):
            if self.n_calls() == 5:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().solve(y_hat, context)

    options = {"on_failure": "skip"}
    kwargs = {"sampler": AllPerturbed(), "n_samples": 5}
    with pytest.raises(SystemExit, match="7"):
        Oracle(Terminated(calls_file), store=tmp_path / "store", **options).sample(y, **kwargs)
    assert Progress.read(tmp_path / "store").n_answers == 0  # it was within the first task
    handler: Any = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit, match="7"):
        handler(signal.SIGTERM, None)


@pytest.mark.usefixtures("foreground")
def test_ctrl_c_waits_until_processes_have_been_started():
    masks = []

    def start_processes():
        with marked_ctrl_c(), delayed_signals():
            # To this thread: one left by another test might get a signal of the process late.
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
            masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        start_processes()
    assert len(masks) == 1  # the block was finished first
    assert signal.SIGINT in masks[0]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
