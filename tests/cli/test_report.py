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
    code, said = command("report", ".")
    assert (code, said) == (0, "Report: report.html\n")
    assert "knapsack" in (tmp_path / "report.html").read_text()
    code, said = command("report", ".", "--out", "pages/mine.html")
    assert (code, said) == (0, "Report: pages/mine.html\n")
    assert (tmp_path / "pages" / "mine.html").exists()


def test_no_other_command_loads_what_only_the_report_needs():
    code = "import sys, lodl.cli._app; print({'matplotlib', 'jinja2', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_bad_row_is_one_line_and_exit_code_1(command, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"domain": "knapsack", "method": "trees"}\n')
    code, said = command("report", ".")
    assert code == 1
    assert said == (
        "Error: rows.jsonl, line 1: `test` must be a list of finite numbers, got None.\n"
    )
    assert not (tmp_path / "report.html").exists()
