"""Problems for the tests. Their classes are local, so that worker processes get them by value."""

import logging
import os
import signal
import time
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

from lodl.oracle import _run, _workers
from lodl.problems import Problem


def make_problem_classes():  # noqa: C901 - two classes
    class Loop(Problem):
        """Aims at the label. Its cost has many digits, so that a changed bit shows."""

        sense = "min"

        def __init__(self, calls_file=None, seconds=0.0):
            self.calls_at = calls_file  # under other names: not parameters of the problem
            self.pause = seconds

        def __init_subclass__(cls):
            cls.__name__ = "Loop"  # the same problem to a store, with faults that a test injects

        def solve(self, y_hat, context):
            self.count(1)
            if self.pause > 0:
                time.sleep(self.pause)
            return np.sinh(y_hat)

        def objective(self, z, y, context):
            return 0.3 + price_in(context) * float(((z - np.sinh(y)) ** 2).sum())

        def project(self, y_hats):
            return np.clip(y_hats, -3, 3)

        def count(self, n):
            if self.calls_at:
                file = os.open(self.calls_at, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
                os.write(file, b"x" * n)
                os.close(file)

        def n_calls(self):
            return Path(self.calls_at).stat().st_size

    class Vectorised(Loop):
        """The same through BLAS, whose last bits depend on the size of a batch."""

        def solve_many(self, y_hats, context):
            self.count(len(y_hats))
            if self.pause > 0:
                time.sleep(self.pause * len(y_hats))
            return y_hats @ mixing(y_hats.shape[1])

        def solve(self, y_hat, context):
            return self.solve_many(y_hat[np.newaxis], context)[0]

        def objective(self, z, y, context):
            return float(self.objective_many(z[np.newaxis], y, context)[0])

        def objective_many(self, zs, y, context):
            return 0.3 + price_in(context) * ((zs - y @ mixing(len(y))) ** 2).sum(axis=1)

    def mixing(n):
        return np.ones((n, n)) / 7 + np.eye(n)

    def price_in(context):
        return 1.0 if context is None else context["price"]

    return {"loop": Loop, "vectorised": Vectorised}


@pytest.fixture(params=["loop", "vectorised"])
def problem_class(request):
    return make_problem_classes()[request.param]


@pytest.fixture
def loop():
    return make_problem_classes()["loop"]


@pytest.fixture
def vectorised():
    return make_problem_classes()["vectorised"]


@pytest.fixture
def y():
    return np.random.default_rng(3).normal(size=(6, 5))


@pytest.fixture
def calls_file(tmp_path):
    path = tmp_path / "calls"
    path.touch()
    return str(path)


@pytest.fixture
def foreground():
    """Ctrl-C as in the foreground of a shell, which ignores it in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items):
    """Marks the tests that start a Dask cluster."""
    for item in items:
        if {"cluster", "dask_client"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.dask)


@pytest.fixture(scope="session")
def dask_client():
    """A Dask cluster of two processes with nannies, in scope only where a test puts it there."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # its own way silences pytest too
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        # By default a cluster gives up a worker that does not come back in 15 seconds.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=False
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def client(dask_client, monkeypatch):
    """The cluster with both its workers, whatever the test before did to them.

    A worker that was killed may take its time to come back: on a busy machine, minutes.
    """
    try:
        dask_client.wait_for_workers(2, timeout=30)
    except TimeoutError:  # a nanny did not bring its worker back
        dask_client.cluster.scale(0)
        dask_client.cluster.scale(2)
        dask_client.wait_for_workers(2, timeout=180)
    monkeypatch.setattr(_run, "STARTING", 180.0)
    monkeypatch.setattr(_workers, "_NO_WORKERS", 180.0)
    return dask_client
