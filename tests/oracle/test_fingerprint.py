import functools
import subprocess
import sys
import threading

import numpy as np
import pytest

from lodl.oracle import fingerprint
from lodl.problems import Problem, problem


def make_class(budget=1, extra=0):
    class Shop(Problem):
        sense = "max"

        def __init__(self, prices):
            self.prices = prices

        def solve(self, y_hat, context):
            return np.argmax(y_hat) + extra

        def objective(self, z, y, context):
            return y[z]

    Shop.budget = budget
    return Shop


def linear(slope):
    return lambda x, offset=0: slope * x + offset


EQUAL = {
    "numbers": (1.5, np.float64(1.5)),
    "arrays": (np.arange(6.0), np.repeat(np.arange(6.0), 2)[::2]),
    "dicts": ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
    "sets": ({"x", "y", "z"}, {"z", "y", "x"}),
    "functions": (linear(2), linear(2)),
    "problems": (make_class()(np.ones(3)), make_class()(np.ones(3))),
    "partials": (functools.partial(max, 1), functools.partial(max, 1)),
    "locks": (threading.Lock(), threading.Lock()),
    "object arrays": (np.array([{"a": 1}, None]), np.array([{"a": 1}, None])),
}

DIFFERENT = {
    "numbers": (1, 2),
    "types": (1, True),
    "text and number": ("1", 1),
    "dtypes": (np.arange(3.0), np.arange(3)),
    "shapes": (np.zeros((2, 3)), np.zeros((3, 2))),
    "signs of zero": (np.array([0.0]), np.array([-0.0])),
    "nesting": ([[1], [2]], [[1, 2]]),
    "enclosed values": (linear(2), linear(3)),
    "code": (lambda x: x + 1, lambda x: x + 2),
    "names called": (lambda x: np.sin(x), lambda x: np.cos(x)),
    "parameters": (make_class()(np.ones(3)), make_class()(np.ones(4))),
    "class attributes": (make_class(1)(np.ones(3)), make_class(2)(np.ones(3))),
    "methods": (make_class(extra=0)(1), make_class(extra=1)(1)),
    "builtins": (max, min),
    "senses": (
        problem(lambda v: v, lambda z, y: 0.0, sense="min"),
        problem(lambda v: v, lambda z, y: 0.0, sense="max"),
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_things_have_one_fingerprint(name):
    a, b = EQUAL[name]
    assert fingerprint(a) == fingerprint(b)


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_things_have_different_fingerprints(name):
    a, b = DIFFERENT[name]
    assert fingerprint(a) != fingerprint(b)


def test_a_cycle_ends():
    ring = [1]
    ring.append(ring)
    assert fingerprint(ring) == fingerprint(ring)


def test_state_left_out_of_pickling_is_left_out():
    class Cached:
        def __init__(self):
            self.size = 3
            self.cache = {}

        def __getstate__(self):
            return {"size": self.size}

    a, b = Cached(), Cached()
    b.cache["x"] = 1
    assert fingerprint(a) == fingerprint(b)
    b.size = 4
    assert fingerprint(a) != fingerprint(b)


def test_it_is_the_same_in_every_process():
    code = (
        "from lodl.oracle import fingerprint;"
        "f = lambda x: x in {'a', 'b', 'c'};"
        "print(fingerprint([f, {'a', 'b'}, {'k': 1.5}]))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in (1, 2)
    }
    assert len(answers) == 1
