import subprocess
import sys

import pytest

import lodl
from lodl.cli import _demo

pytestmark = pytest.mark.slow


@pytest.fixture
def demo(tmp_path, monkeypatch, run_lodl):
    monkeypatch.setattr(_demo, "_SIZES", {"knapsack": (12, 3, 5), "path": (12, 3, 5)})
    monkeypatch.chdir(tmp_path)
    return lambda: run_lodl("demo")


def test_the_demo_shows_what_was_gained_and_says_where_things_are(demo, tmp_path):
    code, said, err = demo()
    assert code == 0, err
    assert said.count(": 5 test instances, ") == 2
    assert max(map(len, said.splitlines())) <= 84
    for name, problem in [("knapsack", "Knapsack"), ("path", "ShortestPath")]:
        assert f"report  lodl-demo/{name}.html\n" in said
        assert (tmp_path / "lodl-demo" / f"{name}.html").exists()
        assert f"model   lodl-demo/{name}\n" in said
        record = lodl.learning.load_result(tmp_path / "lodl-demo" / name)
        assert problem in record.problem


def test_the_demo_imports_no_optional_package_but_those_of_make_demo(tmp_path):
    code = """
import atexit, sys
from lodl.cli import _demo, main
_demo._SIZES = dict.fromkeys(_demo._SIZES, (12, 3, 5))
sys.argv = ["lodl", "demo"]
atexit.register(lambda: print("imported", *(name for name in sys.modules if "." not in name)))
main()
"""
    run = [sys.executable, "-c", code]
    ended = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    imported = set(ended.stdout.rpartition("imported ")[2].split())
    assert "sklearn" in imported
    others = {"torch", "skops", "xgboost", "lightgbm", "catboost", "cvxpy", "pyomo", "highspy"}
    assert not imported & others
