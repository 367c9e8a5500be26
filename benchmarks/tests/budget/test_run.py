"""Rows and tables of the comparison, on few customers."""

import json

import pytest
from typer.testing import CliRunner

from lodl.cli._app import app
from lodl_benchmarks import budget as room
from lodl_benchmarks.budget import _run

METHODS = ["2-stage, LightGBM", "the same, greedy by ratio", "squared error, linear"]


@pytest.fixture(autouse=True)
def few_customers(monkeypatch):
    monkeypatch.setattr(_run, "_N_TEST", 2000)


@pytest.mark.slow
def test_the_command_writes_rows_and_tables_and_resumes(tmp_path):
    methods = [word for name in METHODS for word in ("--methods", name)]
    command = ["reproduce", "budget", "--n", "2000", "--seeds", "1", "--seeds", "2", *methods]
    command += ["--settings", "linear", "--out", str(tmp_path)]
    for _ in range(2):
        result = CliRunner().invoke(app, command, catch_exceptions=False)
        assert result.exit_code == 0
        rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
        assert [row["method"] for row in rows] == METHODS * 2
    assert all(0 < value <= 100 for row in rows for value in row["percent"].values())
    assert "squared error, linear" in (tmp_path / "budget.md").read_text()


def test_gaps_are_paired_by_seed():
    def row(method, seed, percent):
        values = {str(budget): percent for budget in room.BUDGETS}
        return {"task": "linear", "method": method, "seed": seed, "percent": values}

    rows = [row("lodl, linear", seed, 90 + seed) for seed in range(3)]
    rows += [row("2-stage, linear", seed, 89 + seed) for seed in (2, 1, 0)]
    rows += [row("squared error, linear", 7, 50)]  # a seed that the others lack
    means, gaps = room.tables(rows)
    assert "| lodl, linear | 3 | 91.00 ± 1.00 |" in means.markdown()
    assert "squared error" not in gaps.markdown()
    assert "| 2-stage, linear | +1.00 (1.00 to 1.00) |" in gaps.markdown()
