"""Problems named on the command line, by module or by file."""

import importlib
import sys

import pytest

from lodl.cli._modules import load_problem
from lodl.errors import InvalidInputError

PROBLEM = """
import lodl

class Bakery(lodl.Problem):
    sense = "min"
    def solve(self, y_hat, context):
        return y_hat
    def objective(self, z, y, context):
        return abs(z - y).sum()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "shops").mkdir()
    (tmp_path / "a_bakery.py").write_text(PROBLEM)
    (tmp_path / "shops" / "one_shop.py").write_text(PROBLEM)
    (tmp_path / "colorsys.py").write_text("raise RuntimeError('not the one of Python')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in ("a_bakery", "one_shop", "shops.one_shop", "shops", "colorsys"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "name", ["a_bakery", "a_bakery.py", "./a_bakery.py", "shops.one_shop", "shops/one_shop.py"]
)
def test_a_problem_is_named_by_module_or_by_file(folder, name):
    assert type(load_problem(f"{name}:Bakery")).__name__ == "Bakery"


def test_an_absolute_path_names_a_problem(folder):
    assert type(load_problem(f"{folder / 'a_bakery.py'}:Bakery")).__name__ == "Bakery"


def test_a_file_in_the_working_folder_hides_no_installed_module(folder):
    load_problem("a_bakery:Bakery")
    assert sys.path[-1] == str(folder)
    assert importlib.import_module("colorsys").rgb_to_hsv(0, 0, 0) == (0, 0, 0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./absent.py:Bakery", "There is no file absent.py"),
        ("absent:Bakery", "There is no module 'absent' in the current folder or on PYTHONPATH"),
        ("./colorsys.py:Bakery", "colorsys.py is hidden by .*colorsys.py, .* Rename the file"),
        ("./a bakery:Bakery", "must be given as FILE.py:PROBLEM or MODULE:PROBLEM, got './a bak"),
        ("./a_bakery.py", "must be given as FILE.py:PROBLEM or MODULE:PROBLEM"),
    ],
)
def test_a_problem_that_cannot_be_found_is_one_message(folder, name, message):
    with pytest.raises(InvalidInputError, match=message):
        load_problem(name)
