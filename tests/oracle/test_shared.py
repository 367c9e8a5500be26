import pickle

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config

from lodl.oracle import evaluate
from lodl.oracle._shared import Shared
from lodl.problems import Problem
from lodl.samplers import AllPerturbed


def slow_to_set_up(path):
    """A problem whose solver cannot be pickled and notes down each time it is set up."""

    class SetsUp(Problem):
        sense = "max"

        def __init__(self):
            self.solver = None

        def __getstate__(self):
            return {"solver": None}

        def solve(self, y_hat, context):
            if self.solver is None:
                with path.open("a") as file:
                    file.write("x")
                self.solver = np.argmax
            return self.solver(y_hat)

        def objective(self, z, y, context):
            return y[z]

    return SetsUp()


def test_a_worker_sets_a_solver_up_once_however_many_tasks_it_does(tmp_path, y):
    path = tmp_path / "set_up"
    alone = evaluate(slow_to_set_up(path), y, sampler=AllPerturbed(), n_samples=20_000)
    assert path.read_text() == "x"
    both = evaluate(slow_to_set_up(path), y, sampler=AllPerturbed(), n_samples=20_000, n_jobs=2)
    assert len(path.read_text()) <= 1 + 1 + 2  # then the timing in the parent, and two workers
    for one, other in zip(alone, both, strict=True):
        np.testing.assert_array_equal(one.regret, other.regret)


def sent(thing):
    return pickle.loads(pickle.dumps(Shared(thing)))  # noqa: S301 - our own


def name_of_object(shared):
    return id(shared.thing)


def test_threads_of_a_worker_have_an_object_each():
    received = sent([1, 2])
    with parallel_config("threading", n_jobs=2):
        names = Parallel()(delayed(name_of_object)(received) for _ in range(50))
    here = name_of_object(received)
    assert here not in names
    assert received.thing is received.thing
    assert received.thing == [1, 2]


@pytest.mark.parametrize("size", [0, 3, 300_000])
def test_arrays_arrive_as_they_were(size):
    thing = {"matrix": np.arange(2 * size, dtype=np.float64).reshape(2, size).T, "name": "a"}
    shared = Shared(thing)

    def name_and_sum(shared):  # local, so that workers get it by value
        matrix = shared.thing["matrix"]
        return shared.thing["name"], matrix.shape, matrix.sum()

    parts = Parallel(n_jobs=2)(delayed(name_and_sum)(shared) for _ in range(4))
    assert parts == [("a", thing["matrix"].shape, thing["matrix"].sum())] * 4


def test_the_next_object_replaces_the_last():
    first, second = sent("a"), sent("b")
    assert [first.thing, second.thing, first.thing] == ["a", "b", "a"]
