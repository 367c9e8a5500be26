import array
import functools
import subprocess
import sys
import threading
import types
from collections import deque
from datetime import date, timedelta
from decimal import Decimal
from typing import ClassVar

import numpy as np
import pytest
import torch

from lodl.errors import InvalidInputError
from lodl.oracle import fingerprint
from lodl.problems import Problem, problem


def make_class(budget=1, extra=0, capacity=1):
    class Shop(Problem):
        sense = "max"
        _capacity = capacity
        _cache: ClassVar[dict] = {}

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


def linear_layer(weight):
    layer = torch.nn.Linear(2, 1)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(weight)
    return layer


class Tagged(dict):
    def __init__(self, tag):
        super().__init__(a=1)
        self.tag = tag


def filled_cache():
    shop = make_class()
    shop._cache["a"] = 1
    return shop


def in_module(source):
    """A function that reads `P` inside a comprehension, from a module with this source."""
    module = types.ModuleType("settings_of_a_test")
    module.ones = np.ones
    exec(f"{source}\ndef f(x): return [P for _ in x]", vars(module))
    return module.f


EQUAL = {
    "numbers": (1.5, np.float64(1.5)),
    "arrays": (np.arange(6.0), np.repeat(np.arange(6.0), 2)[::2]),
    "dicts": ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
    "sets": ({"x", "y", "z"}, {"z", "y", "x"}),
    "functions": (linear(2), linear(2)),
    "problems": (make_class()(np.ones(3)), make_class()(np.ones(3))),
    "private caches": (make_class(), filled_cache()),
    "docstrings": (
        in_module("def P():\n 'One.'\n return 1"),
        in_module("def P():\n 'Gives one.'\n return 1"),
    ),
    "partials": (functools.partial(max, 1), functools.partial(max, 1)),
    "tensors": (torch.arange(6.0), torch.arange(12.0)[::2] / 2),
    "decimals": (Decimal("1.5"), Decimal("1.5")),
    "generators": (np.random.default_rng(1), np.random.default_rng(1)),
    "modules": (in_module("P = [1, 2]"), in_module("P = [1, 2]\nunread = 3")),
    "counters": (
        in_module("n = 1\ndef P():\n global n\n n += 1"),
        in_module("n = 2\ndef P():\n global n\n n += 1"),
    ),
    "functions that call each other": (
        in_module("def q(): return P()\ndef P(): return q()"),
        in_module("def q(): return P()\ndef P(): return q()"),
    ),
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
    "private constants of a class": (make_class(capacity=1), make_class(capacity=2)),
    "cached functions": (
        functools.lru_cache(lambda x: x + 1),
        functools.lru_cache(lambda x: x + 2),
    ),
    "methods": (make_class(extra=0)(1), make_class(extra=1)(1)),
    "builtins": (max, min),
    "methods of a built-in type": (str.upper, str.lower),
    "owners of a built-in method": ("a".join, "b".join),
    "tensors": (torch.zeros(2), torch.ones(2)),
    "tensors that say the same": (torch.zeros(2), torch.zeros(2, dtype=torch.int64)),
    "modules of torch": (linear_layer(0.0), linear_layer(1.0)),
    "decimals": (Decimal("1.5"), Decimal("1.6")),
    "dates": (date(2020, 1, 1), date(2020, 1, 2)),
    "durations": (timedelta(1), timedelta(2)),
    "deques": (deque([1]), deque([2])),
    "arrays of Python": (array.array("d", [1]), array.array("d", [2])),
    "bytearrays": (bytearray(b"a"), bytearray(b"b")),
    "generators": (np.random.default_rng(1), np.random.default_rng(2)),
    "slices": (slice(1), slice(2)),
    "moments": (np.datetime64("2020-01-01", "ns"), np.datetime64("2020-01-02", "ns")),
    "units": (np.datetime64(1, "ns"), np.datetime64(1, "us")),
    "fields of a record": (np.zeros(2, [("a", "f8")]), np.zeros(2, [("b", "f8")])),
    "attributes of a dict": (Tagged(1), Tagged(2)),
    "constants of the module": (in_module("P = 1"), in_module("P = 2")),
    "arrays of the module": (in_module("P = ones(2)"), in_module("P = ones(3)")),
    "functions of the module": (
        in_module("def q(): return 1\ndef P(): return q()"),
        in_module("def q(): return 2\ndef P(): return q()"),
    ),
    "classes of the module": (
        in_module("class P:\n def f(self): return 1"),
        in_module("class P:\n def f(self): return 2"),
    ),
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


@pytest.mark.parametrize("thing", [threading.Lock(), {"a": [sys.stderr]}, (i for i in [1])])
def test_what_has_no_content_to_compare_is_refused(thing):
    with pytest.raises(InvalidInputError, match="Leave it out of the `__getstate__`"):
        fingerprint(thing)


def test_many_functions_that_call_each_other_take_no_longer_than_they_are_long():
    names = [f"f{i}" for i in range(60)]
    source = "\n".join(f"def {name}(): return {', '.join(names)}" for name in names)
    assert fingerprint(in_module(f"{source}\nP = 1\ndef P(): return f0()"))


def test_a_class_with_cached_properties_and_slots_has_a_fingerprint():
    def make(number):
        class Lazy:
            @functools.cached_property
            def size(self):
                return number

        class Slotted(Lazy):
            __slots__ = ("width",)

        return Slotted()

    assert fingerprint(make(1)) == fingerprint(make(1)) != fingerprint(make(2))


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
        "import decimal, torch;"
        "tensor = torch.nn.Parameter(torch.ones(2));"
        "print(fingerprint([f, {'a', 'b'}, {'k': 1.5}, decimal.Decimal(1), tensor]))"
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
