import json
from dataclasses import replace
from functools import partial

import pytest

from lodl.domains import linear_model
from lodl_benchmarks.experiments import COST_SCALES, SCALES, SETUPS, RunSize

pytestmark = pytest.mark.slow


@pytest.fixture
def command(tmp_path, monkeypatch, run_lodl, quick_methods):
    """Runs `lodl reproduce ...` on small domains in an empty folder; returns code and output."""
    small = replace(
        SETUPS["linear"],
        build=partial(linear_model, sizes=(6, 3, 20), n_items=5),
        training=replace(SETUPS["linear"].training, n_steps=10),
    )
    for name in ("linear", "web", "portfolio"):
        monkeypatch.setitem(SETUPS, name, small)
    monkeypatch.setitem(SCALES, "quick", RunSize(1, 2, 60))
    monkeypatch.setitem(COST_SCALES, "quick", (60, 3))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments):
        code, out, err = run_lodl("reproduce", *arguments, "--n-jobs", "1")
        return code, out + err

    return run


@pytest.mark.parametrize("name", ["figure-losses", "figure-linear", "figure-cost"])
def test_a_figure_is_written_as_data_and_drawn_and_a_second_call_computes_nothing(
    name, command, tmp_path, monkeypatch
):
    code, said = command(name)
    assert code == 0
    for suffix in ("json", "svg", "png"):
        assert f"runs/{name}.{suffix}" in said
    data = tmp_path / "runs" / f"{name}.json"
    first = data.read_bytes()
    kind = name.removeprefix("figure-")
    monkeypatch.setattr(f"lodl_benchmarks.experiments.{kind}_figure", None)
    assert command(name)[0] == 0
    assert data.read_bytes() == first


def test_other_settings_make_the_figure_again(command, tmp_path, monkeypatch):
    data = tmp_path / "runs" / "figure-losses.json"
    command("figure-losses")
    monkeypatch.setitem(SCALES, "quick", RunSize(1, 2, 80))
    command("figure-losses")
    assert json.loads(data.read_text())["settings"]["n_samples"] == 80


def test_costs_are_written_for_people_as_well(command, tmp_path):
    _, said = command("figure-cost")
    assert "| T_O | oracle call of sampling |" in (tmp_path / "runs/figure-cost.md").read_text()
    assert "T_LODL" in said


@pytest.mark.parametrize("content", ['{"settings": ', "[1]"])
def test_data_that_cannot_be_read_are_made_again(command, tmp_path, content):
    data = tmp_path / "runs" / "figure-losses.json"
    data.parent.mkdir()
    data.write_text(content)
    code, _ = command("figure-losses")
    assert code == 0
    assert json.loads(data.read_text())["settings"]["n_samples"] == 60
