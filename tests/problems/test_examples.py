"""The examples in the docstrings of the adapters run."""

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("adapter", ["highs", "cvxpy", "command", "pyomo", "pyepo", "ortools"])
def test_the_examples_of_an_adapter_run(adapter):
    done = doctest.testmod(import_module(f"lodl.problems.{adapter}"))
    assert done.attempted > 0
    assert done.failed == 0
