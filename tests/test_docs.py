"""What the documents say holds."""

import json
import re
import runpy
import shlex
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

import lodl
import lodl.cli
from lodl.losses import squared_error_loss

ROOT = Path(__file__).parents[1]
TO_UPDATE = "Run `python results/readme.py --write` to update the numbers of README.md."
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "results").rglob("*.md")),
]


README = (ROOT / "README.md").read_text()
OF_README = SimpleNamespace(**runpy.run_path(str(ROOT / "results" / "readme.py")))
RECORD = json.loads(OF_README.RECORD.read_text())


@pytest.mark.slow
def test_the_code_of_the_readme_runs_and_prints_what_the_page_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(compile(block, "README.md", "exec"), namespace)
    assert (tmp_path / "truck.safetensors").exists()
    # Rounding may change the numbers after training, and nothing else.
    said = capsys.readouterr().out
    assert without_numbers(said) == without_numbers(RECORD["said"]), TO_UPDATE
    before, *_, after = namespace["evaluation"].means.values()
    assert before == pytest.approx(RECORD["before"], rel=1e-6), TO_UPDATE
    rounded = RECORD["after_with_rounding"]
    assert 0.8 * min(rounded) < after < 1.25 * max(rounded), TO_UPDATE


def without_numbers(text):
    return re.sub(r"[\d.,]*\d", "#", " ".join(text.split()))


def test_the_numbers_of_the_readme_are_those_of_its_record():
    assert OF_README.with_record(README, RECORD) == README, TO_UPDATE


def test_writing_the_record_mends_a_wrong_number_in_the_readme():
    for number in (
        f"{RECORD['before']:.4f}",
        f"{max(RECORD['after_with_rounding']):.3f}. For",
        "% less; for ten",
    ):
        assert README.count(number) == 1
        assert OF_README.with_record(README.replace(number, f"9{number}"), RECORD) == README


@pytest.mark.slow
def test_the_tutorial_of_the_command_line_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    page = (ROOT / "docs" / "tutorials" / "command-line.md").read_text()
    page = page.replace("--n-jobs 1", "--n-jobs 1 --max-seconds 0")  # the site does it in full
    names: dict[str, Any] = {}
    codes = []
    for kind, options, body in re.findall(
        r"```{(run|shell)}\n((?::[^\n]*\n)*)(.*?)```", page, re.DOTALL
    ):
        if file := re.search(r":file: (\S+)", options):
            Path(file[1]).write_text(body)
        elif kind == "run":
            exec(compile(body, "command-line.md", "exec"), names)
        for command in body.replace("\\\n", "").splitlines() if kind == "shell" else []:
            if command.startswith("lodl "):
                monkeypatch.setattr(sys, "argv", shlex.split(command))
                with pytest.raises(SystemExit) as ended:
                    lodl.cli.main()
                codes.append((ended.value.code, "fails" in options))
    said = capsys.readouterr()
    assert codes == [(0, False)] * 4 + [(2, True)], said.err
    assert "'n/a?' in row 17 ('2024-01-18'), column 'park'" in said.err
    assert "245 test instances" in said.out
    plan = Path("plan.csv").read_text().splitlines()
    assert plan[0] == "day,harbour,station,park,campus,museum,stadium"
    assert len(plan) == 6
    sys.modules.pop("trucks", None)


@pytest.mark.slow
def test_the_learner_in_jax_keeps_its_contract(monkeypatch):
    """JAX is not installed here: its two functions are stood in for, by complex steps."""

    def vjp(function, w):
        def pull_back(g):
            gradients = {name: np.zeros_like(array) for name, array in w.items()}
            for name, array in w.items():
                for place in np.ndindex(array.shape):
                    moved = {key: one.astype(complex) for key, one in w.items()}
                    moved[name][place] += 1e-30j
                    gradients[name][place] = (g * function(moved).imag).sum() / 1e-30
            return (gradients,)

        return function(w), pull_back

    def tree_map(function, *trees):
        return {name: function(*(tree[name] for tree in trees)) for name in trees[0]}

    jax: Any = ModuleType("jax")
    jax.numpy, jax.vjp, jax.tree = np, vjp, SimpleNamespace(map=tree_map)
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax.numpy", np)
    page = (ROOT / "docs" / "how-to" / "own-learner.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    assert len(code.splitlines()) < 65
    names: dict[str, Any] = {"__name__": "jax_learner"}
    monkeypatch.setitem(sys.modules, "jax_learner", ModuleType("jax_learner"))
    exec(compile(code, "own-learner.md", "exec"), names)
    lodl.testing.check_learner(names["JaxLearner"](n_hidden=2, max_steps=60))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_the_gain_of_the_readme_holds_for_other_data(seed):
    result = OF_README.run(OF_README.reseeded(OF_README.example(README), seed))
    assert result["after"] < 0.6 * result["before"]


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 120


def test_the_page_on_files_states_the_version_of_loss_files_that_is_written(tmp_path):
    squared_error_loss(np.eye(2)).save(tmp_path / "loss")
    with safe_open(tmp_path / "loss", framework="numpy") as file:
        name, version = (file.metadata()[key] for key in ("format", "version"))
    page = (ROOT / "docs" / "reference" / "files.md").read_text()
    assert f"| `format`, `version` | `{name}`, `{version}` |" in page
    assert f"`*.safetensors`, format version {version}\n" in page


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text()):
        assert "://" in target or (document.parent / target).exists(), target


def test_the_tests_that_a_page_names_exist():
    text = "\n".join(path.read_text() for path in sorted((ROOT / "docs").rglob("*.md")))
    named = set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text))
    assert len(named) > 50
    for file, test in sorted(named):
        assert f"def {test}(" in (ROOT / file).read_text() or not test, f"{file}::{test}"
