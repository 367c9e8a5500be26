import functools
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum

import numpy as np
import pytest
import scipy.sparse
import torch

from lodl._digest import digest
from lodl.errors import InvalidInputError


@dataclass
class Car:
    seats: int
    uses: int = field(default=0, compare=False)

    @functools.cached_property
    def places(self):
        return [None] * self.seats


@dataclass(frozen=True, slots=True)
class Slotted:
    width: int


class Colour(Enum):
    RED = 1
    BLUE = 2


class Tagged(dict):
    def __init__(self, tag):
        super().__init__(a=1)
        self.tag = tag


class Path(list):
    @functools.cached_property
    def length(self):
        return len(self)


class Opaque:
    pass


def used(thing, *names):
    for name in names:
        getattr(thing, name)
    return thing


def sparse(kind, last=3.0):
    matrix = scipy.sparse.lil_array((2, 3))
    matrix[0, 1], matrix[1, 2] = 2.0, last
    return matrix.asformat(kind)


EQUAL = {
    "dataclasses": (Car(4), Car(4)),
    "fields left out of comparisons": (Car(4), Car(4, uses=2)),
    "cached properties": (Car(4), used(Car(4), "places")),
    "numbers": (1.5, np.float64(1.5)),
    "arrays": (np.arange(6.0), np.repeat(np.arange(6.0), 2)[::2]),
    "dicts": ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
    "sets": ({"x", "y", "z"}, {"z", "y", "x"}),
    "tensors": (torch.arange(6.0), torch.arange(12.0)[::2] / 2),
    "decimals": (Decimal("1.5"), Decimal("1.5")),
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
    "dataclasses": (Car(4), Car(5)),
    "classes": (Car(4), Slotted(4)),
    "members of an enumeration": (Colour.RED, Colour.BLUE),
    "numbers": (1, 2),
    "types": (1, True),
    "text and number": ("1", 1),
    "dtypes": (np.arange(3.0), np.arange(3)),
    "shapes": (np.zeros((2, 3)), np.zeros((3, 2))),
    "signs of zero": (np.array([0.0]), np.array([-0.0])),
    "nesting": ([[1], [2]], [[1, 2]]),
    "slots": (Slotted(1), Slotted(2)),
    "tensors": (torch.zeros(2), torch.ones(2)),
    "tensors that say the same": (torch.zeros(2), torch.zeros(2, dtype=torch.int64)),
    **{
        f"sparse arrays, {kind}": (sparse(kind), sparse(kind, 4.0))
        for kind in ("csr", "csc", "bsr", "coo", "dia", "dok", "lil")
    },
    "formats of sparse arrays": (sparse("csr"), sparse("csc")),
    "decimals": (Decimal("1.5"), Decimal("1.6")),
    "dates": (date(2020, 1, 1), date(2020, 1, 2)),
    "durations": (timedelta(1), timedelta(2)),
    "moments": (np.datetime64("2020-01-01", "ns"), np.datetime64("2020-01-02", "ns")),
    "units": (np.datetime64(1, "ns"), np.datetime64(1, "us")),
    "fields of a record": (np.zeros(2, [("a", "f8")]), np.zeros(2, [("b", "f8")])),
    "attributes of a dict": (Tagged(1), Tagged(2)),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_values_have_one_digest(name):
    a, b = EQUAL[name]
    assert digest(a) == digest(b)


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_values_have_different_digests(name):
    a, b = DIFFERENT[name]
    assert digest(a) != digest(b)


def test_a_value_that_contains_itself_is_refused():
    ring = [1]
    ring.append(ring)
    with pytest.raises(InvalidInputError, match="must not contain itself"):
        digest(ring)


@pytest.mark.parametrize(
    "value",
    [Opaque(), {"a": [sys.stderr]}, len, Car, np.array([Opaque()])],
    ids=["object", "file", "function", "class", "array of objects"],
)
def test_other_objects_are_refused(value):
    with pytest.raises(InvalidInputError, match=r"has no content.*name the instances: `keys=`"):
        digest(value)


@pytest.mark.slow
def test_it_is_the_same_in_every_process():
    code = (
        "from lodl._digest import digest;"
        "import decimal, numpy;"
        "print(digest([{'a', 'b'}, {'k': 1.5}, decimal.Decimal(1), numpy.ones(2)]))"
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
