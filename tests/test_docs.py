"""What the documents say holds."""

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import lodl

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "results").rglob("*.md")),
]


def test_the_code_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    namespace = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    assert (tmp_path / "truck.safetensors").exists()
    said = capsys.readouterr().out
    assert "Use this model: regret" in said
    assert namespace["after"].mean() < 0.5 * namespace["before"].mean()  # it wins


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

    jax = ModuleType("jax")
    jax.numpy, jax.vjp, jax.tree = np, vjp, SimpleNamespace(map=tree_map)
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax.numpy", np)
    page = (ROOT / "docs" / "how-to" / "own-learner.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    assert len(code.splitlines()) < 60
    names = {"__name__": "jax_learner"}
    monkeypatch.setitem(sys.modules, "jax_learner", ModuleType("jax_learner"))
    exec(compile(code, "own-learner.md", "exec"), names)
    lodl.testing.check_learner(names["JaxLearner"](n_hidden=2, n_steps=60))


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_the_gain_of_the_readme_holds_for_other_data(seed):
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
    namespace = {}
    exec(code.replace("default_rng(0)", f"default_rng({seed})"), namespace)
    assert namespace["after"].mean() < 0.6 * namespace["before"].mean()


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text()):
        assert "://" in target or (document.parent / target).exists(), target
