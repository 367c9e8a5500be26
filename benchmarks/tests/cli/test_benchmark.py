from dataclasses import replace
from functools import partial

import pytest
from typer.testing import CliRunner

from lodl.cli._app import app
from lodl.domains import shortest_path
from lodl.errors import InvalidInputError
from lodl.training.torch import TrainingSettings
from lodl_benchmarks import learner, peers
from lodl_benchmarks.rounds import TASKS

pytestmark = pytest.mark.slow


def test_rounds_writes_rows_and_tables(tmp_path, monkeypatch):
    small = replace(
        TASKS["path"],
        build=partial(shortest_path, sizes=(8, 4, 10), grid=(2, 3)),
        training=TrainingSettings(n_steps=2),
        methods=("2-stage", "DecisionHinges, labels only"),
    )
    monkeypatch.setitem(TASKS, "path", small)
    options = ["--tasks", "path", "--seeds", "1", "--out", str(tmp_path), "--n-jobs", "1"]
    result = CliRunner().invoke(app, ["benchmark", "rounds", *options], catch_exceptions=False)
    assert result.exit_code == 0
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 2
    assert "| 2-stage |" in (tmp_path / "rounds.md").read_text()
    one = ["benchmark", "rounds", *options, "--methods", "2-stage"]
    CliRunner().invoke(app, one, catch_exceptions=False)
    assert "DecisionHinges, labels only" in (tmp_path / "rounds.md").read_text()


def test_learner_writes_rows_and_tables(tmp_path, monkeypatch):
    build = partial(shortest_path, sizes=(16, 4, 20), grid=(2, 3))
    monkeypatch.setitem(learner.TASKS, "path", replace(learner.TASKS["path"], build=build))
    options = ["--tasks", "path", "--seeds", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, ["benchmark", "learner", *options], catch_exceptions=False)
    assert result.exit_code == 0
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 1
    assert "Model: linear" in (tmp_path / "learner.md").read_text()


@pytest.fixture
def peers_command(tmp_path, monkeypatch):
    build = partial(shortest_path, sizes=(16, 4, 20), grid=(2, 3))
    monkeypatch.setitem(peers.TASKS, "path-100-6", replace(peers.TASKS["path-100-6"], build=build))
    options = ["--tasks", "path-100-6", "--seeds", "1", "--out", str(tmp_path), "--n-jobs", "1"]
    return ["benchmark", "peers", *options]


def test_peers_writes_rows_tables_pictures_and_a_page(tmp_path, peers_command):
    methods = [part for name in ("2-stage", "SPO+", "lodl") for part in ("--methods", name)]
    result = CliRunner().invoke(app, [*peers_command, *methods], catch_exceptions=False)
    assert result.exit_code == 0
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 3
    assert "| SPO+ |" in (tmp_path / "peers.md").read_text()
    assert all((tmp_path / name).stat().st_size > 0 for name in ("bill.svg", "ranks.svg"))
    page = (tmp_path / "report.html").read_text()
    CliRunner().invoke(app, ["benchmark", "report", str(tmp_path)], catch_exceptions=False)
    assert (tmp_path / "report.html").read_text() == page


def test_peers_without_the_baseline_have_no_picture(tmp_path, peers_command):
    result = CliRunner().invoke(app, [*peers_command, "--methods", "SPO+"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "none without rows of 2-stage" in result.output
    assert "| SPO+ |" in (tmp_path / "peers.md").read_text()
    assert not (tmp_path / "bill.svg").exists()
    CliRunner().invoke(app, ["benchmark", "report", str(tmp_path)], catch_exceptions=False)
    assert "SPO+" in (tmp_path / "report.html").read_text()


def test_peers_show_rows_of_earlier_runs_too(tmp_path, peers_command):
    for name in ("2-stage", "SPO+"):
        CliRunner().invoke(app, [*peers_command, "--methods", name], catch_exceptions=False)
    assert "| 2-stage |" in (tmp_path / "peers.md").read_text()


def test_an_unknown_task_is_named():
    with pytest.raises(InvalidInputError, match="`tasks` must be one of path, large-path"):
        CliRunner().invoke(app, ["benchmark", "rounds", "--tasks", "moon"], catch_exceptions=False)
