import json
from dataclasses import replace
from functools import partial

import pytest

from lodl_benchmarks.domains import linear_model
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


@pytest.fixture
def undrawn(monkeypatch):
    """Drawing takes most of the time: this leaves it out."""

    def leave_out_drawings():
        for kind in ("losses", "linear", "cost"):
            monkeypatch.setattr(f"lodl_benchmarks.paper.draw_{kind}", lambda data: None)
        monkeypatch.setattr("lodl_benchmarks.pages.save_figure", lambda figure, path: ("", ""))

    return leave_out_drawings


@pytest.mark.parametrize("name", ["figure-losses", "figure-linear", "figure-cost"])
def test_a_figure_is_written_as_data_and_drawn_and_a_second_call_computes_nothing(
    name, command, tmp_path, monkeypatch, undrawn
):
    code, said = command(name)
    assert code == 0
    for suffix in ("json", "svg", "png"):
        assert f"runs/{name}.{suffix}" in said
        assert (tmp_path / "runs" / f"{name}.{suffix}").stat().st_size > 0
    if name == "figure-cost":  # for people as well
        assert "| T_O | oracle call of sampling |" in (tmp_path / "runs/figure-cost.md").read_text()
        assert "T_LODL" in said
    undrawn()
    data = tmp_path / "runs" / f"{name}.json"
    first = data.read_bytes()
    kind = name.removeprefix("figure-")
    monkeypatch.setattr(f"lodl_benchmarks.experiments.{kind}_figure", None)
    assert command(name)[0] == 0
    assert data.read_bytes() == first


def test_other_settings_and_data_that_cannot_be_read_make_the_figure_again(
    command, tmp_path, monkeypatch, undrawn
):
    undrawn()
    data = tmp_path / "runs" / "figure-losses.json"
    data.parent.mkdir()
    for n_samples, content in ((60, '{"settings": '), (80, None), (60, "[1]")):
        if content is not None:
            data.write_text(content)
        monkeypatch.setitem(SCALES, "quick", RunSize(1, 2, n_samples))
        assert command("figure-losses")[0] == 0
        assert json.loads(data.read_text())["settings"]["n_samples"] == n_samples
