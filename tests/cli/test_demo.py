import subprocess
import sys
from types import SimpleNamespace

import pytest

import lodl

pytestmark = pytest.mark.slow

SCRIPT = """
import atexit, sys
from lodl.cli import _demo, main
_demo._SIZES = dict.fromkeys(_demo._SIZES, (12, 3, 5))
sys.argv = ["lodl", "demo"]
atexit.register(lambda: print("imported", *(name for name in sys.modules if "." not in name)))
main()
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo on small data, in a new process: what it said, wrote and imported."""
    folder = tmp_path_factory.mktemp("demo")
    run = [sys.executable, "-c", SCRIPT]
    ended = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    said, _, imported = ended.stdout.rpartition("imported ")
    return SimpleNamespace(said=said, folder=folder / "lodl-demo", imported=set(imported.split()))


def test_the_demo_shows_what_was_gained_and_says_where_things_are(demo):
    assert demo.said.count(": 5 test instances, ") == 2
    assert max(map(len, demo.said.splitlines())) <= 84
    assert len(demo.said.splitlines()) <= 45
    assert demo.said.startswith("Regret is what a decision loses against the best one")
    for name, problem in [("knapsack", "Knapsack"), ("path", "ShortestPath")]:
        assert f"report  lodl-demo/{name}.html\n" in demo.said
        assert "5 test instances" in (demo.folder / f"{name}.html").read_text()
        assert f"model   lodl-demo/{name}\n" in demo.said
        record = lodl.learning.load_result(demo.folder / name)
        assert problem in record.problem


def test_the_demo_imports_no_optional_package_but_those_of_make_demo(demo):
    assert "sklearn" in demo.imported
    others = {"torch", "skops", "xgboost", "lightgbm", "catboost", "cvxpy", "pyomo", "highspy"}
    assert not demo.imported & others
