"""Whole processes that are killed, interrupted, or share a store."""

import importlib.util
import os
import signal
import sqlite3
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone]

SCRIPT = Path(__file__).with_name("sampling_script.py")
N_CALLS = 8 * 201  # of the script


def start(command, folder, *arguments, **kwargs):
    folder.mkdir(exist_ok=True)
    (folder / "calls").touch()
    line = [sys.executable, "-W", "error", SCRIPT, command, folder, *arguments]
    return subprocess.Popen([str(part) for part in line], **kwargs)


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
def script():
    """The script as a module, for runs that nothing happens to."""
    spec = importlib.util.spec_from_file_location("sampling_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.Slow.seconds = 0.0
    return module


@pytest.fixture(scope="module")
def uninterrupted(script):
    return script.regrets(script.Slow(os.devnull), None).tobytes()


def resume(script, folder):
    """Finish a run; return its bits and the number of calls it took."""
    before = n_calls(folder)
    regrets = script.regrets(script.Slow(str(folder / "calls")), folder / "store")
    return regrets.tobytes(), n_calls(folder) - before


def check_store(folder):
    """Check that a store is a sound file, and alone."""
    assert [path.name for path in folder.glob("store*")] == ["store"]
    connection = sqlite3.connect(folder / "store")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_killed_20_times_and_resumed(uninterrupted, tmp_path):
    assert start("kill", tmp_path / "killed", 20).wait() == 0
    assert regrets_of(tmp_path / "killed") == [uninterrupted]
    in_flight = 2 * 20 + 8  # calls of a task, or of one that was not yet written, and verification
    assert 0 < n_calls(tmp_path / "killed") - N_CALLS <= 20 * in_flight < N_CALLS
    check_store(tmp_path / "killed")


@pytest.mark.parametrize(("n_jobs", "store"), [(1, "store"), (2, "store"), (2, "")])
def test_ctrl_c_ends_a_run_at_once_and_says_what_is_kept(
    uninterrupted, script, tmp_path, n_jobs, store
):
    folder = tmp_path / "interrupted"
    process = start(
        "run",
        folder,
        n_jobs,
        store,
        start_new_session=True,
        stderr=subprocess.PIPE,
        # A test run in the background of a shell hands down that Ctrl-C is ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    wait_until(lambda: n_calls(folder) > N_CALLS / 2)
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= n_jobs - 1
    os.killpg(process.pid, signal.SIGINT)
    began = time.monotonic()
    errors = process.communicate(timeout=20)[1].decode()
    assert time.monotonic() - began < 2.5
    assert process.returncode != 0
    assert errors.count("Traceback") == 1
    assert "Error" not in errors
    line = errors.rstrip().splitlines()[-1]
    assert line.startswith("KeyboardInterrupt: Stopped after ")
    assert f"of {N_CALLS} calls." in line
    told = f"kept in {folder / 'store'}." if store else "Nothing is kept; with `store=`"
    assert told in line
    psutil.wait_procs(family, timeout=5)
    assert not any(child.is_running() for child in family)
    if store:
        regrets, n_more = resume(script, folder)
        assert regrets == uninterrupted
        assert n_more < 0.75 * N_CALLS


def test_workers_end_when_their_parent_is_killed_and_the_next_run_goes_on(
    uninterrupted, script, tmp_path
):
    folder = tmp_path / "orphaned"
    process = start("run", folder, 2)
    wait_until(lambda: n_calls(folder) > N_CALLS / 2)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(workers, timeout=5)
    assert not alive
    regrets, n_more = resume(script, folder)
    assert regrets == uninterrupted
    assert n_more < 0.75 * N_CALLS


def test_three_processes_on_one_store_agree(uninterrupted, tmp_path):
    processes = [start("run", tmp_path / "shared", 1) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert regrets_of(tmp_path / "shared") == 3 * [uninterrupted]
    check_store(tmp_path / "shared")


def workers_of(process):
    """Return the worker processes of a run, also those that are about to start."""
    try:
        children = psutil.Process(process.pid).children(recursive=True)
        return [child for child in children if "popen_loky" in " ".join(child.cmdline())]
    except psutil.NoSuchProcess:  # between the two lines
        return []


def test_workers_that_are_about_to_start_end_when_their_parent_is_killed(tmp_path):
    process = start("run", tmp_path / "orphaned", 2, stdout=subprocess.DEVNULL)
    wait_until(lambda: len(workers_of(process)) == 2)
    workers = workers_of(process)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(workers, timeout=15)
    assert not alive


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_ctrl_c_while_workers_start_is_one_traceback_and_leaves_no_process(tmp_path, seconds):
    """A worker spends more CPU time than that on its imports."""
    process = start(
        "run",
        tmp_path / "interrupted",
        2,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    wait_until(lambda: any(one.cpu_times().user >= seconds for one in workers_of(process)))
    family = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    said, errors = (text.decode() for text in process.communicate(timeout=60))
    assert said == ""
    assert errors.count("Traceback") == 1
    assert "KeyboardInterrupt: Stopped after 0 of" in errors.rstrip().splitlines()[-1]
    _, alive = psutil.wait_procs(family, timeout=15)
    assert not alive


def test_a_forked_process_starts_its_own_workers(tmp_path):
    process = start("fork", tmp_path / "forked", start_new_session=True)
    try:
        assert process.wait(timeout=120) == 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    regrets = regrets_of(tmp_path / "forked")
    assert len(regrets) == 3  # a parent, a fork of it, a process of multiprocessing
    assert len(set(regrets)) == 1
