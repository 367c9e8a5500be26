"""Executors that are closed, and tasks that fail outside of their solver calls."""

import os
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import cloudpickle
import numpy as np
import pytest
from distributed import Client, LocalCluster

import lodl
from lodl.errors import OracleError
from lodl.oracle import Oracle, Progress, _run
from lodl.oracle._failures import Options
from lodl.oracle._workers import choose_workers
from lodl.samplers import AllPerturbed

pytestmark = [pytest.mark.slow, pytest.mark.alone]

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import it
UNLIMITED = Options(None, "raise", 0.1)

LONG = {"sampler": AllPerturbed(), "n_samples": 1000}


@pytest.fixture
def cluster():
    with LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        processes=False,
        dashboard_address=None,
        silence_logs=False,
    ) as cluster:
        yield cluster


@pytest.fixture
def cluster_client(cluster):
    with Client(cluster, set_as_default=False) as client:
        yield client


# Closed before a run ---------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [None, 5.0])
@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_an_executor_that_was_shut_down_is_named(loop, y, pool, timeout):
    executor = pool(2)
    executor.shutdown()
    message = (
        rf"The {pool.__name__} no longer accepts tasks .*after shutdown.*Keep it open.*`store=`"
    )
    with pytest.raises(OracleError, match=message):
        Oracle(loop(), executor=executor, timeout=timeout).sample(y, **LONG)


def test_a_dask_client_that_was_closed_is_named(loop, y, cluster_client):
    cluster_client.close()
    with pytest.raises(
        OracleError, match=r"The Dask cluster no longer accepts tasks .*Keep it open"
    ):
        Oracle(loop(), executor=cluster_client).sample(y, **LONG)


# Closed during a run ---------------------------------------------------------------------------


def close_during_a_run(close, loop, y, calls_file, store, executor):
    """Close an executor in the middle of a run, and return the run's error."""
    problem = loop(calls_file, seconds=0.002)

    def close_later():
        while problem.n_calls() < 100:
            time.sleep(0.01)
        close()

    thread = threading.Thread(target=close_later)
    thread.start()
    with pytest.raises(OracleError, match=r"no longer accepts tasks .*Keep it open") as caught:
        Oracle(problem, executor=executor, store=store).sample(y, **LONG)
    thread.join()
    return str(caught.value)


@pytest.mark.parametrize("cancel", [False, True])
def test_an_executor_that_is_shut_down_during_a_run_is_named_and_answers_are_kept(
    loop, y, calls_file, tmp_path, cancel
):
    executor, store = ThreadPoolExecutor(2), tmp_path / "store"

    def close():
        executor.shutdown(cancel_futures=cancel)

    error = close_during_a_run(close, loop, y, calls_file, store, executor)
    assert f"kept in {store}" in error
    assert Progress.read(store).n_answers > 0


def test_tasks_that_a_shutdown_cancels_in_the_queue_are_named(loop, y, monkeypatch):
    monkeypatch.setattr(_run, "_PATIENCE", 0.2)
    executor, done = ThreadPoolExecutor(1), threading.Event()
    executor.submit(done.wait, 60)  # holds up the tasks of the run
    closer = threading.Timer(0.3, lambda: executor.shutdown(wait=False, cancel_futures=True))
    closer.start()
    try:
        with pytest.raises(OracleError, match="The ThreadPoolExecutor no longer accepts tasks"):
            Oracle(loop(), executor=executor).sample(y, **LONG)
    finally:
        done.set()


@pytest.mark.parametrize("what", ["client", "cluster"])
def test_a_dask_cluster_that_is_closed_during_a_run_is_named_and_answers_are_kept(
    loop, y, calls_file, tmp_path, cluster, cluster_client, what
):
    close = {"client": cluster_client.close, "cluster": cluster.close}[what]
    error = close_during_a_run(close, loop, y, calls_file, tmp_path / "store", cluster_client)
    assert f"kept in {tmp_path / 'store'}" in error


# Tasks that fail outside of their calls --------------------------------------------------------


def test_an_error_of_a_task_is_named_without_a_guess_at_its_cause(loop: Any, y):
    parent = os.getpid()

    class Odd(loop):
        @property
        def sense(self):
            return "min" if os.getpid() == parent else 1 / 0

    with pytest.raises(OracleError, match=r"could not do a task \(ZeroDivisionError") as caught:
        Oracle(Odd(), n_jobs=2).sample(y, **LONG)
    assert "unpickled" not in str(caught.value)


def leaves(where):
    """An object that ends a process other than this one when it is unpickled there."""

    class Leaves:
        def __reduce__(self):
            return leave_elsewhere, (where,)

    return Leaves()


def leave_elsewhere(parent):
    if os.getpid() != parent:
        sys.exit("enough")
    return 1.0


def test_an_exit_while_a_problem_is_unpickled_does_not_end_the_parent(loop, y):
    problem = loop()
    problem.part = leaves(os.getpid())
    with pytest.raises(OracleError, match=r"\(SystemExit: enough\).*unpickled.*imports installed"):
        Oracle(problem, n_jobs=2).sample(y, **LONG)


class Exits(lodl.Problem):
    sense = "min"

    def solve(self, y_hat, context):
        sys.exit("enough")

    def objective(self, z, y, context):
        return 0.0


@pytest.mark.parametrize("where", ["processes", "threads"])
def test_an_exit_of_a_solver_in_a_worker_does_not_end_the_parent(y, where):
    with ThreadPoolExecutor(1) as threads:
        workers = {"n_jobs": 2} if where == "processes" else {"executor": threads}
        with pytest.raises(OracleError, match=r"the label itself: .*SystemExit: enough"):
            lodl.learn_loss(lodl.Oracle(Exits(), **workers), y, n_samples=2)


def test_a_function_that_exits_in_a_worker_is_an_error():
    def exits(guard):
        guard.solve(np.ones(2), None)

    workers = choose_workers(Exits(), 2, None, UNLIMITED)
    with pytest.raises(OracleError, match="The problem failed: SystemExit: enough"):
        workers.apply(exits, options=UNLIMITED)
