import json
import subprocess
import sys

import pytest


@pytest.fixture
def command(tmp_path, monkeypatch, run_lodl):
    """Runs `lodl ...` in an empty folder; returns its exit code and output."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code, out, err = run_lodl(*arguments)
        return code, out + err

    return run


def test_rows_of_a_users_own_become_a_page(command, tmp_path):
    row = {"domain": "knapsack", "method": "trees", "test": [0.5, 0.7]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    code, said = command("benchmark", "report", ".")
    assert (code, said) == (0, "Report: report.html\n")
    assert "knapsack" in (tmp_path / "report.html").read_text()
    code, said = command("benchmark", "report", ".", "--out", "pages/mine.html")
    assert (code, said) == (0, "Report: pages/mine.html\n")
    assert (tmp_path / "pages" / "mine.html").exists()


def test_naming_a_command_loads_only_what_it_needs():
    code = "import sys, lodl_benchmarks.cli; print({'matplotlib', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_bad_row_is_one_line_and_exit_code_1(command, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"domain": "knapsack", "method": "trees"}\n')
    code, said = command("benchmark", "report", ".")
    assert code == 1
    assert said == (
        "Error: rows.jsonl, line 1: `test` must be a list of finite numbers, got None.\n"
    )
    assert not (tmp_path / "report.html").exists()


def test_a_folder_without_rows_is_told_what_rows_are(command):
    code, said = command("benchmark", "report", ".")
    assert code == 1
    assert said.startswith("Error: There is no rows.jsonl. ")
    assert "at least `domain`, `method` and `test`" in said


@pytest.mark.parametrize("out", ["folder", "file/page.html"])
def test_a_place_that_is_taken_is_one_line_and_exit_code_1(command, tmp_path, out):
    (tmp_path / "rows.jsonl").write_text('{"domain": "a", "method": "b", "test": [1]}\n')
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    code, said = command("benchmark", "report", ".", "--out", out)
    assert code == 1
    assert said.startswith(
        "Error: fi" if out.startswith("file") else "Error: folder cannot be used"
    )
    assert said.count("\n") == 1


def test_the_help_tells_how_rows_look(command):
    code, said = command("benchmark", "report", "--help")
    assert code == 0
    for word in ("rows.jsonl", "domain", "method", "test", "slices.json"):
        assert word in said
