"""What the documents say holds."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(ROOT.glob("*.md")) + sorted((ROOT / "results").rglob("*.md"))


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


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text()):
        assert "://" in target or (document.parent / target).exists(), target
