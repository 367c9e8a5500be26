import sys
from typing import Any

import pytest

from lodl.cli import main
from lodl_benchmarks.runner import METHODS


@pytest.fixture
def quick_methods():
    """Leave out the methods that take long."""
    methods: Any = METHODS
    before = dict(methods)
    del methods["NN"], methods["DirectedQuadratic"]
    yield
    methods.clear()
    methods.update(before)  # in their order


@pytest.fixture
def run_lodl(monkeypatch, capsys):
    """Runs `lodl ...` and returns its exit code, what it said, and its errors."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["lodl", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return run
