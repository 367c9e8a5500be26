"""Processes that die or are interrupted, for real."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster

from lodl.errors import OracleError
from lodl.oracle import evaluate
from lodl.samplers import AllPerturbed

SCRIPT = Path(__file__).with_name("sampling_script.py")
N_CALLS = 8 * 401  # of the script


def start(command, folder, number, **kwargs):
    folder.mkdir(exist_ok=True)
    (folder / "calls").touch()
    arguments = [sys.executable, "-W", "error", SCRIPT, command, folder, number]
    return subprocess.Popen([str(a) for a in arguments], **kwargs)


def regrets_of(folder):
    return [np.load(path).tobytes() for path in folder.glob("regrets-*.npy")]


def n_calls(folder):
    return (folder / "calls").stat().st_size


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    assert start("run", folder, 1).wait() == 0
    return folder


def test_killed_20_times_and_resumed(uninterrupted, tmp_path):
    folder = tmp_path / "killed"
    assert start("kill", folder, 20).wait() == 0
    assert regrets_of(folder) == regrets_of(uninterrupted)
    header = json.loads((folder / "samples.zarr" / "zarr.json").read_text())["attributes"]
    in_flight = max(np.prod(header["chunks"]["regret"]), 3 * 8)  # or the timing and the optima
    assert 0 < n_calls(folder) - n_calls(uninterrupted) <= 20 * in_flight
    assert 20 * in_flight < N_CALLS  # the bound says something


def test_interrupted_by_ctrl_c_and_resumed(uninterrupted, tmp_path):
    folder = tmp_path / "interrupted"
    process = start(
        "run",
        folder,
        2,
        start_new_session=True,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # A test run in the background of a shell hands down that Ctrl-C is ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    wait_until(lambda: n_calls(folder) > N_CALLS / 2)
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 2
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode != 0
    assert errors.rstrip().splitlines()[-1].startswith(b"KeyboardInterrupt")
    psutil.wait_procs(family, timeout=10)
    assert not any(child.is_running() for child in family)
    before = n_calls(folder)
    assert start("run", folder, 1).wait() == 0
    assert regrets_of(folder) == regrets_of(uninterrupted)
    assert n_calls(folder) - before < 0.75 * N_CALLS


def test_killed_with_workers_at_work_and_resumed(uninterrupted, tmp_path):
    folder = tmp_path / "orphaned"
    process = start("run", folder, 2)
    wait_until(lambda: n_calls(folder) > N_CALLS / 2)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    for worker in workers:  # they may go on for a while: nobody takes their answers
        worker.kill()
    psutil.wait_procs(workers, timeout=10)
    before = n_calls(folder)
    assert start("run", folder, 2).wait() == 0
    assert regrets_of(folder) == regrets_of(uninterrupted)
    assert n_calls(folder) - before < 0.75 * N_CALLS


def test_two_processes_on_one_store_agree(uninterrupted, tmp_path):
    folder = tmp_path / "shared"
    processes = [start("run", folder, 1) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert regrets_of(folder) == 2 * regrets_of(uninterrupted)


def bits(samples):
    return [instance.regret.tobytes() for instance in samples]


def killing(base, *, always_at=None, marker=None):
    """A problem that kills the worker process it runs in, once or at one instance always."""
    parent = os.getpid()

    class Killing(base):
        def solve(self, y_hat, context):
            if os.getpid() != parent and self.must_kill(context):
                os.kill(os.getpid(), signal.SIGKILL)
            return super().solve(y_hat, None)

        def objective(self, z, y, context):
            return super().objective(z, y, None)

        def must_kill(self, context):
            if marker is None:
                return context == always_at and self.n_calls() > 20  # not at the labels
            if self.n_calls() < 300:
                return False
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return False
            return True

    return Killing


def test_a_loky_worker_dies(loop, y, tmp_path, calls_file):
    problem = killing(loop, marker=str(tmp_path / "marker"))(calls_file, seconds=0.001)
    kwargs = {"sampler": AllPerturbed(), "n_samples": 200}
    samples = evaluate(problem, y, n_jobs=2, **kwargs)
    assert (tmp_path / "marker").exists()
    assert bits(samples) == bits(evaluate(loop(), y, **kwargs))


def test_a_task_that_always_kills_its_worker_is_an_error_and_the_rest_is_kept(
    loop, y, tmp_path, calls_file
):
    problem = killing(loop, always_at=2)(calls_file, seconds=0.002)
    kwargs = {"sampler": AllPerturbed(), "n_samples": 100, "store": tmp_path / "samples.zarr"}
    context = list(range(6))
    with pytest.raises(OracleError, match=r"Workers could not do their tasks \(TerminatedWorker"):
        evaluate(problem, y, context=context, n_jobs=2, **kwargs)
    before = problem.n_calls()
    samples = evaluate(problem, y, context=context, n_jobs=1, **kwargs)  # no worker, no death
    assert problem.n_calls() - before < 6 * 101
    assert bits(samples) == bits(evaluate(loop(), y, sampler=AllPerturbed(), n_samples=100))


def test_a_dask_worker_process_dies(loop, y, calls_file):
    problem = loop(calls_file, seconds=0.001)
    kwargs = {"sampler": AllPerturbed(), "n_samples": 300}
    expected = bits(evaluate(loop(), y, **kwargs))
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):
        victim, _ = client.run(os.getpid).values()

        def kill():
            wait_until(lambda: problem.n_calls() > 500)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        with joblib.parallel_config(backend="dask"):
            samples = evaluate(problem, y, **kwargs)
        killer.join()
        assert not psutil.pid_exists(victim)
    assert bits(samples) == expected
    assert 6 * 301 < problem.n_calls() < 2 * 6 * 301


def test_a_problem_that_cannot_be_sent_to_workers_is_an_error(loop, y):
    problem = loop()
    problem.lock = threading.Lock()
    with pytest.raises(OracleError, match="leave it out of the problem's `__getstate__`"):
        evaluate(problem, y, sampler=AllPerturbed(), n_samples=5, n_jobs=2)
    evaluate(problem, y, sampler=AllPerturbed(), n_samples=5, n_jobs=1)
