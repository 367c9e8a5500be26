import json
import re
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest

from lodl_benchmarks.cli import _reproduce
from lodl_benchmarks.domains import linear_model, web_advertising
from lodl_benchmarks.experiments import SCALES, SETUPS, TABLE3_SCALES, RunSize
from lodl_benchmarks.pages import parse_row, read_json_rows

pytestmark = pytest.mark.slow


@pytest.fixture
def command(tmp_path, monkeypatch, run_lodl, quick_methods):
    """Runs `lodl ...` on small domains in an empty folder; returns its exit code and output."""
    for name, build in [
        ("web", partial(web_advertising, sizes=(6, 3, 20))),
        ("linear", partial(linear_model, sizes=(6, 3, 20), n_items=5)),
    ]:
        setup = SETUPS[name]
        few_steps = replace(setup.training, n_steps=10)
        small = replace(setup, build=build, training=few_steps, samplers=(setup.sampler,))
        monkeypatch.setitem(SETUPS, name, small)
    for scales, name in [(SCALES, "quick"), (TABLE3_SCALES, "quick")]:
        monkeypatch.setitem(scales, name, RunSize(1, 2, 60))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments):
        code, out, err = run_lodl(*arguments, "--n-jobs", "1")
        return code, out + err

    return run


def rows_of(path):
    """Return the rows of a file, each of them."""
    return [parse_row(values) for _, values in read_json_rows(path)]


def test_table_1_is_written_beside_its_rows_and_later_calls_compute_what_is_missing(
    command, tmp_path
):
    code, said = command("reproduce", "table1", "--domain", "linear")
    assert code == 0
    assert "Linear Model" in said
    out = tmp_path / "runs"
    table = (out / "table1.md").read_text()
    assert "| 2-stage |" in table
    assert "Sampling is timed by the clock, fitting and training by the processor." in table
    assert not list(out.glob("*.draft"))
    rows, slices = rows_of(out / "rows.jsonl"), (out / "slices.json").read_bytes()
    assert len(rows) == 13
    assert len(json.loads(slices)["slices"][0]["loss"]) == 6
    for path in (out / "losses").iterdir():  # their slices are kept
        path.unlink()
    assert command("reproduce", "table1", "--domain", "linear")[0] == 0
    assert rows_of(out / "rows.jsonl") == rows
    assert (out / "slices.json").read_bytes() == slices
    assert command("reproduce", "table1", "--domain", "linear", "--seeds", "2")[0] == 0
    more = rows_of(out / "rows.jsonl")
    assert more[:13] == rows
    assert [row.seed for row in more] == [0] * 13 + [1] * 13


def test_the_tables_of_a_folder_share_their_rows(command, tmp_path):
    out = tmp_path / "runs"
    counts = []
    for name in ("table2a", "table2b", "table3"):
        domain = ["--domain", "web"] if name == "table3" else []
        code, said = command("reproduce", name, *domain)
        assert code == 0
        assert f"runs/{name}.md" in said
        assert "| ConvexDirectedQuadratic |" in (out / f"{name}.md").read_text()
        counts.append(len(rows_of(out / "rows.jsonl")))
    # 4 losses, 3 samplers; 50 samples besides 60, 2 decision families with 20, 50 and 60; no more
    assert counts == [12, 22, 22]
    assert {path.name for path in (out / "samples").iterdir()} == {
        f"web-0-{sampler}({SETUPS['web'].sampler.scale})"
        for sampler in ("OnePerturbed", "TwoPerturbed", "AllPerturbed")
    }
    assert json.loads((out / "table2b.json").read_text())["kind"] == "quality"
    assert json.loads((out / "table3.json").read_text())["kind"] == "fidelity"
    assert (out / "table3.svg").stat().st_size > 0
    assert (out / "table3.png").stat().st_size > 0
    slices = json.loads((out / "slices.json").read_text())["slices"]
    assert len(slices[0]["loss"]) == 6


def test_all_runs_every_command_in_order_with_the_options_that_it_takes(command, monkeypatch):
    called: list[Any] = []
    commands = [_noted(called, command) for command in _reproduce.IN_ORDER]
    monkeypatch.setattr(_reproduce, "IN_ORDER", commands)
    options = ["--scale", "paper", "--out", "elsewhere", "--prices", "p.csv", "--seeds", "3"]
    code, _ = command("reproduce", "all", *options)
    assert code == 0
    tables = ["table1", "table2a", "table2b", "table3"]
    figures = ["figure_losses", "figure_linear", "figure_cost"]
    assert [name for name, _ in called] == [*tables, *figures]
    shared = {"scale": "paper", "out": Path("elsewhere"), "n_jobs": 1}
    seeds, prices = {"seeds": 3}, {"prices": Path("p.csv")}
    taken = dict(called)
    assert taken["table1"] == taken["table3"] == shared | seeds | prices
    assert taken["table2a"] == taken["table2b"] == taken["figure_linear"] == shared | seeds
    assert taken["figure_losses"] == taken["figure_cost"] == shared


def _noted(called, command):
    @wraps(command)
    def note(**options):
        called.append((command.__name__, options))

    return note


def test_settings_are_chosen_and_the_tried_ones_recorded(command, tmp_path):
    code, said = command("reproduce", "settings", "--domain", "linear", "--n-samples", "60")
    assert code == 0
    assert '"learning_rates"' in said
    rows = rows_of(tmp_path / "runs" / "settings" / "rows.jsonl")
    assert {float(row.setting("learning_rate")) for row in rows} == set(
        SETUPS["linear"].learning_rates
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--domain", "chess"], "--domain must be one of linear, web, portfolio, got 'chess'"),
        (["--scale", "huge"], "--scale must be one of quick, paper, got 'huge'"),
        (["--domain", "portfolio-prices"], "portfolio-prices needs --prices FILE"),
    ],
)
def test_a_name_that_is_not_known_is_one_line_and_exit_code_2(command, arguments, message):
    code, said = command("reproduce", "table1", *arguments)
    assert code == 2
    assert message in said


@pytest.mark.parametrize("name", [["reproduce", "table1"], ["reproduce", "all"]])
def test_no_workers_are_an_error(run_lodl, name, tmp_path):
    code, _, err = run_lodl(*name, "--n-jobs", "0", "--out", str(tmp_path / "out"))
    assert code == 2
    assert err.startswith("Error: --n-jobs must be")
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", [["reproduce", "table1"], ["reproduce", "figure-cost"]])
def test_a_file_in_the_place_of_the_folder_is_one_line_and_exit_code_1(command, name, tmp_path):
    (tmp_path / "taken").write_text("")
    code, said = command(*name, "--out", "taken")
    assert code == 1
    assert re.search(r"Error: taken\S* cannot be used: \w.*\.\n$", said)
