import array
import functools
import subprocess
import sys
import threading
from collections import deque
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse
import torch

from lodl._digest import digest
from lodl.errors import InvalidInputError


class Car:
    def __init__(self, seats):
        self.seats = seats
        self.cache = {}

    def __getstate__(self):
        return {"seats": self.seats}


class Slotted:
    __slots__ = ("width",)

    def __init__(self, width):
        self.width = width


class Tagged(dict):
    def __init__(self, tag):
        super().__init__(a=1)
        self.tag = tag


class Graph:
    def __init__(self, edges):
        self.edges = edges

    @functools.cached_property
    def degree(self):
        return len(self.edges)


class Path(list):
    @functools.cached_property
    def length(self):
        return len(self)


def used_car(seats):
    car = Car(seats)
    car.cache["x"] = 1
    return car


def used(thing, *names):
    for name in names:
        getattr(thing, name)
    return thing


def sparse(kind, last=3.0):
    matrix = scipy.sparse.lil_array((2, 3))
    matrix[0, 1], matrix[1, 2] = 2.0, last
    return matrix.asformat(kind)


def linear_layer(weight):
    layer = torch.nn.Linear(2, 1)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(weight)
    return layer


EQUAL = {
    "numbers": (1.5, np.float64(1.5)),
    "arrays": (np.arange(6.0), np.repeat(np.arange(6.0), 2)[::2]),
    "dicts": ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
    "sets": ({"x", "y", "z"}, {"z", "y", "x"}),
    "objects": (Car(4), Car(4)),
    "state left out of pickling": (Car(4), used_car(4)),
    "partials": (functools.partial(max, 1), functools.partial(max, 1)),
    "tensors": (torch.arange(6.0), torch.arange(12.0)[::2] / 2),
    "decimals": (Decimal("1.5"), Decimal("1.5")),
    "generators": (np.random.default_rng(1), np.random.default_rng(1)),
    "cached properties": (Graph([1]), used(Graph([1]), "degree")),
    "cached properties of lists": (Path([1]), used(Path([1]), "length")),
    **{
        f"sparse arrays, {kind}": (sparse(kind), used(sparse(kind), *facts))
        for kind, facts in {
            "csr": ("has_canonical_format", "has_sorted_indices"),
            "csc": ("has_canonical_format", "has_sorted_indices"),
            "bsr": ("has_canonical_format",),
            "coo": ("row", "T"),
            "dia": ("T",),
            "dok": ("T",),
            "lil": ("T",),
        }.items()
    },
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
    "objects": (Car(4), Car(5)),
    "slots": (Slotted(1), Slotted(2)),
    "classes": (Car, Slotted),
    "builtins": (max, min),
    "functions": (used_car, linear_layer),
    "arguments of partials": (functools.partial(max, 1), functools.partial(max, 2)),
    "tensors": (torch.zeros(2), torch.ones(2)),
    "tensors that say the same": (torch.zeros(2), torch.zeros(2, dtype=torch.int64)),
    "modules of torch": (linear_layer(0.0), linear_layer(1.0)),
    "graphs": (Graph([1]), Graph([2])),
    **{
        f"sparse arrays, {kind}": (sparse(kind), sparse(kind, 4.0))
        for kind in ("csr", "csc", "bsr", "coo", "dia", "dok", "lil")
    },
    "formats of sparse arrays": (sparse("csr"), sparse("csc")),
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
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_things_have_one_digest(name):
    a, b = EQUAL[name]
    assert digest(a) == digest(b)


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_things_have_different_digests(name):
    a, b = DIFFERENT[name]
    assert digest(a) != digest(b)


def test_a_cycle_ends():
    ring = [1]
    ring.append(ring)
    assert digest(ring) == digest(ring)


@pytest.mark.parametrize("thing", [threading.Lock(), {"a": [sys.stderr]}, lambda x: x])
def test_what_has_no_content_to_compare_is_refused(thing):
    with pytest.raises(InvalidInputError, match=r"has no content.*Name the instances.*`keys=`"):
        digest(thing)


def test_it_is_the_same_in_every_process():
    code = (
        "from lodl._digest import digest;"
        "import decimal, numpy;"
        "print(digest([{'a', 'b'}, {'k': 1.5}, decimal.Decimal(1), numpy.ones(2), print]))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in (1, 2)
    }
    assert len(answers) == 1
