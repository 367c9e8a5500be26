import json
import os
import runpy
import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import lodl
from lodl._digest import problem_parameters

SCRIPT = Path(__file__).with_name("parameters_script.py")
MODULE = runpy.run_path(str(SCRIPT))
Shop: Any = MODULE["Shop"]
problems, solve, total = MODULE["problems"], MODULE["solve"], MODULE["total"]
PRICES = np.array([1.0, 2.0, 3.0])


@pytest.mark.slow
def test_problem_parameters_every_kind_of_problem_are_the_same_texts_in_another_process():
    pyepo = {"class": "PyepoProblem"}
    here = {name: problem_parameters(problem) for name, problem in problems().items()}
    assert here.pop("pyepo", pyepo) == pyepo  # not in the other process: it would load torch
    there = subprocess.run(
        [sys.executable, SCRIPT],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(there.stdout) == here


def test_parameters_are_constructor_arguments_kept_under_their_name():
    found = problem_parameters(Shop(PRICES, 2.5, solver=object()))
    prices = found.pop("prices")
    assert found == {"class": "Shop", "capacity": "2.5", "name": "'corner'"}
    assert prices == problem_parameters(Shop(PRICES.copy(), 7))["prices"]
    assert prices != problem_parameters(Shop(PRICES + 1, 7))["prices"]


def test_parameters_are_the_same_after_the_problem_was_used():
    shop = Shop(PRICES, 2)
    before = problem_parameters(shop)
    shop.solve(np.ones(3), None)
    assert problem_parameters(shop) == before


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2, "2"),
        (2.0, "2"),
        (np.float64(2.5), "2.5"),
        (np.int64(3), "3"),
        (np.inf, "inf"),
        (True, "True"),
        (None, "None"),
        ("a", "'a'"),
        ((1, [2.0, "b"]), "[1, [2, 'b']]"),
        (partial(solve, capacity=2), "[['capacity', 2]]"),
    ],
)
def test_plain_values_are_shown_as_they_are(value, text):
    assert problem_parameters(Shop(PRICES, value))["capacity"] == text


@pytest.mark.parametrize(
    "value",
    [object(), solve, {"a": 1}, {1}, [1, object()], np.array([lambda: 0]), np.datetime64("2020")],
    ids=["object", "function", "dict", "set", "list", "array", "date"],
)
def test_other_objects_are_left_out(value):
    assert "capacity" not in problem_parameters(Shop(PRICES, value))


@pytest.mark.parametrize("value", ["x" * 100, list(range(100)), csr_array(np.eye(3))], ids=type)
def test_long_values_and_sparse_arrays_are_digests(value):
    text = problem_parameters(Shop(PRICES, value))["capacity"]
    assert len(text) == 32
    assert text == problem_parameters(Shop(PRICES, value))["capacity"]


def test_arguments_passed_on_to_a_parent_class_count():
    class Chain(Shop):
        def __init__(self, n_shops, **options):
            super().__init__(PRICES, **options)
            self.n_shops = n_shops

    found = problem_parameters(Chain(3, capacity=4))
    assert (found["class"], found["n_shops"], found["capacity"]) == ("Chain", "3", "4")


@pytest.mark.parametrize("slots", [False, True])
def test_dataclass_fields_count_unless_they_are_left_out_of_comparisons(slots):
    @dataclass(slots=slots)  # type: ignore[literal-required]
    class Pick(lodl.Problem):
        budget: int
        seen: int = field(default=0, compare=False)
        derived: int = field(default=5, init=False)
        sense = "min"

        def solve(self, y_hat, context):
            return 0

        def objective(self, z, y, context):
            return 0.0

    assert problem_parameters(Pick(3, seen=4)) == {"class": "Pick", "budget": "3"}


def test_a_problem_of_functions_is_known_by_what_is_bound_to_them():
    def parameters(capacity):
        bound = partial(solve, capacity=capacity)
        return problem_parameters(lodl.problem(bound, total, sense="min", unit="EUR"))

    assert parameters(2)["unit"] == "'EUR'"
    assert parameters(2)["sense"] == "'min'"
    assert parameters(2) != parameters(3)


def test_secrets_are_left_out():
    class Licensed(lodl.Problem):
        sense = "min"

        def __init__(self, capacity, licence_key):
            self.capacity, self.licence_key = capacity, licence_key

        def solve(self, y_hat, context):
            return 0

        def objective(self, z, y, context):
            return 0.0

    assert problem_parameters(Licensed(2, "abc-123")) == {"class": "Licensed", "capacity": "2"}
