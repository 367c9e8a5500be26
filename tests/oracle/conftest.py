"""Problems for the tests. Their classes are local, so that worker processes get them by value."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from lodl.problems import Problem


def make_problem_classes():  # noqa: C901 - two classes
    class Loop(Problem):
        """Picks the largest entry. Its cost has many digits, so that a changed bit shows."""

        sense = "min"

        def __init__(self, calls_file=None, seconds=0.0):
            self.calls_file = calls_file
            self.seconds = seconds

        def solve(self, y_hat, context):
            self.count(1)
            if self.seconds > 0:
                time.sleep(self.seconds)
            weights = np.exp(y_hat - y_hat.max())
            return weights / weights.sum()

        def objective(self, z, y, context):
            return -float(z @ y) * price_in(context)

        def project(self, y_hats):
            return np.clip(y_hats, -3, 3)

        def count(self, n):
            if self.calls_file:
                file = os.open(self.calls_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
                os.write(file, b"x" * n)
                os.close(file)

        def n_calls(self):
            return Path(self.calls_file).stat().st_size

    class Vectorised(Loop):
        """The same through BLAS, whose last bits depend on the size of a batch."""

        def solve_many(self, y_hats, context):
            self.count(len(y_hats))
            if self.seconds > 0:
                time.sleep(self.seconds * len(y_hats))
            return y_hats @ (np.ones((y_hats.shape[1],) * 2) / 7 + np.eye(y_hats.shape[1]))

        def objective_many(self, zs, y, context):
            return -(zs @ y) * price_in(context)

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
