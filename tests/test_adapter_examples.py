"""The examples of the adapters run, on a handful of instances, and stay short."""

import ast
import re
from pathlib import Path

import pytest

import lodl

pytestmark = pytest.mark.slow

plt = pytest.importorskip("matplotlib.pyplot")
FOLDER = Path(__file__).parents[1] / "examples" / "adapters"
NEEDS = {"cvxpy": "cvxpy", "recourse": "cvxpy", "ortools": "ortools", "pyepo": "pyepo"}
NEEDS |= {"pyomo": "highspy"}
EXAMPLES = sorted(FOLDER.glob("plot_*.py"))


@pytest.fixture
def small_regressor(monkeypatch):
    """Makes every regressor ask a few questions for one loss."""
    regressor = lodl.DecisionFocusedRegressor

    def small(problem, **options):
        quick = {"families": [lodl.DecisionHinges()], "n_samples": 2, "n_rounds": 0}
        return regressor(problem, **{**options, **quick})

    monkeypatch.setattr(lodl, "DecisionFocusedRegressor", small)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_draws_one_picture(path, small_regressor):
    pytest.importorskip(NEEDS.get(path.stem.removeprefix("plot_"), "sklearn"))
    code, n_found = re.subn(r"^N(.*) = \d+", r"N\1 = 20", path.read_text(), flags=re.MULTILINE)
    assert n_found == 1
    plt.switch_backend("agg")
    plt.close("all")
    exec(compile(code, str(path), "exec"), {"__name__": "example"})
    assert len(plt.get_fignums()) == 1
    plt.close("all")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_needs_at_most_25_lines_from_model_to_trained_model(path):
    """Count statements' lines after the imports, up to `fit`; a program as text is no code."""
    tree = ast.parse(path.read_text())
    lines = set()
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom) or is_text(statement):
            continue
        lines |= set(range(statement.lineno, statement.end_lineno + 1))
        if ".fit(" in ast.unparse(statement):
            break
    code = path.read_text().splitlines()
    assert sum(1 for line in lines if code[line - 1].strip()) <= 25


def is_text(statement):
    return isinstance(getattr(statement, "value", None), ast.Constant)
