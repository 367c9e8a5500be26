import sys
from dataclasses import replace
from functools import partial

import pytest

import lodl
from lodl.cli import main
from lodl.domains import linear_model, web_advertising
from lodl.experiments import SCALES, SETUPS, ResultsFile, ScaleOfRun


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs `lodl ...` on small domains in an empty folder; returns its exit code and output."""
    for name, build in [
        ("web", partial(web_advertising, sizes=(6, 3, 20))),
        ("linear", partial(linear_model, sizes=(6, 3, 20), n_items=5)),
    ]:
        few_steps = replace(SETUPS[name].training, n_steps=10)
        monkeypatch.setitem(SETUPS, name, replace(SETUPS[name], build=build, training=few_steps))
    for name in ("demo", "quick"):
        monkeypatch.setitem(SCALES, name, ScaleOfRun(1, 2, 60))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["lodl", *arguments, "--n-jobs", "1"])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code, said.out + said.err

    return run


def test_the_demo_shows_what_was_gained_and_says_where_things_are(command, tmp_path):
    code, said = command("demo")
    assert code == 0
    assert "quality of decisions" in said
    for method in ("2-stage", "ConvexDirectedQuadratic", "oracle calls", "seconds"):
        assert method in said
    loss = lodl.load_loss(tmp_path / "lodl-demo" / "web-advertising.safetensors")
    assert loss.family == lodl.ConvexDirectedQuadratic()
    assert loss.n_instances == 9
    assert "lodl-demo/rows.jsonl" in said


def test_table_1_is_written_beside_its_rows_and_a_second_call_computes_nothing(command, tmp_path):
    code, said = command("reproduce", "table1", "--domain", "linear")
    assert code == 0
    assert "Linear Model" in said
    out = tmp_path / "runs"
    assert "| 2-stage |" in (out / "table1.md").read_text()
    rows = ResultsFile(out / "rows.jsonl").rows()
    assert len(rows) == 11
    command("reproduce", "table1", "--domain", "linear")
    assert ResultsFile(out / "rows.jsonl").rows() == rows


def test_settings_are_chosen_and_the_tried_ones_recorded(command, tmp_path):
    code, said = command("reproduce", "settings", "--domain", "linear")
    assert code == 0
    assert '"learning_rates"' in said
    rows = ResultsFile(tmp_path / "runs" / "settings" / "rows.jsonl").rows()
    assert {row["learning_rate"] for row in rows} == set(SETUPS["linear"].learning_rates)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--domain", "chess"], "`domain` must be one of linear, web, portfolio, got 'chess'"),
        (["--scale", "huge"], "`scale` must be one of"),
    ],
)
def test_a_name_that_is_not_known_is_one_line_and_exit_code_1(command, arguments, message):
    code, said = command("reproduce", "table1", *arguments)
    assert code == 1
    assert message in said
