"""The commands of `lodl`, and those that other packages add to it."""

import re
import subprocess
import sys
from importlib.metadata import version

import pytest

MODULE = """
import typer
from typing import Annotated

chess = typer.Typer(rich_markup_mode=None)

@chess.command()
def play(n_moves: Annotated[int, typer.Option()] = 3) -> None:
    \"\"\"Play chess.\"\"\"
    from lodl.errors import InvalidInputError
    if n_moves < 1:
        raise InvalidInputError(f"`n_moves` must be at least 1, got {n_moves}.")
    typer.echo(f"{n_moves} moves")

@chess.command()
def resign() -> None:
    \"\"\"Resign.\"\"\"

def go(size: int) -> None:
    \"\"\"Play go.\"\"\"
    typer.echo(f"a board of {size}")
"""
ENTRY_POINTS = """
[lodl.commands]
chess = games:chess
go = games:go
fit = games:go
ludo = games:ludo
"""


@pytest.fixture
def games(tmp_path, monkeypatch):
    """A package with commands for `lodl`, installed."""
    (tmp_path / "games.py").write_text(MODULE)
    folder = tmp_path / "games-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: games\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("games", None)


def test_a_command_of_another_package_is_listed_without_being_loaded(games, run_lodl):
    code, said, _ = run_lodl("--help")
    assert code == 0
    assert re.search(r"chess +A command of games\.", said)
    assert "games" not in sys.modules


def test_a_command_of_another_package_runs_when_it_is_named(games, run_lodl):
    assert run_lodl("chess", "play", "--n-moves", "5") == (0, "5 moves\n", "")
    assert run_lodl("go", "19") == (0, "a board of 19\n", "")


def test_the_help_of_an_added_command_is_its_own(games, run_lodl):
    code, said, _ = run_lodl("chess", "-h")
    assert code == 0
    assert "lodl chess [OPTIONS] COMMAND" in said
    assert "Play chess." in said
    assert "completion" not in said


def test_an_error_of_an_added_command_names_its_option(games, run_lodl):
    code, _, err = run_lodl("chess", "play", "--n-moves", "0")
    assert (code, err) == (2, "Error: --n-moves must be at least 1, got 0.\n")


def test_no_package_replaces_a_command_of_lodl(games, run_lodl):
    code, said, _ = run_lodl("fit", "--help")
    assert code == 0
    assert "Train a model for better decisions" in said


def test_an_added_command_that_cannot_be_loaded_is_one_line_and_exit_code_1(games, run_lodl):
    code, _, err = run_lodl("ludo")
    assert code == 1
    assert err.startswith("Error: The command ludo of games cannot be loaded: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["benchmark", "domains", "reproduce"])
def test_without_its_package_a_command_says_what_to_install(name, run_lodl, monkeypatch):
    monkeypatch.setattr("lodl.cli._app.entry_points", lambda group: ())
    code, said, err = run_lodl(name, "table1", "--scale", "paper")
    assert (code, said) == (2, "")
    message = " ".join(err.split())
    assert f"`lodl {name}` is a command of lodl-benchmarks, which is not installed." in message
    assert "pip install -c constraints.txt ./benchmarks" in message
    assert name not in run_lodl("--help")[1]


@pytest.mark.slow
def test_loading_the_commands_imports_nothing_slow():
    slow = {"matplotlib", "jinja2", "torch", "sklearn", "pandas"}
    code = f"import sys, lodl.cli._app; print({slow} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_no_workers_are_an_error(run_lodl, tmp_path):
    code, _, err = run_lodl("demo", "--n-jobs", "0", "--out", str(tmp_path / "out"))
    assert code == 2
    assert err.startswith("Error: --n-jobs must be")
    assert err.count("\n") == 1


def test_a_file_in_the_place_of_the_folder_is_one_line_and_exit_code_1(run_lodl, tmp_path):
    (tmp_path / "taken").write_text("")
    code, _, err = run_lodl("demo", "--out", str(tmp_path / "taken"))
    assert code == 1
    assert re.fullmatch(r"Error: \S*taken\S* cannot be used: \w.*\.\n", err)


def test_the_version_is_told(run_lodl):
    assert run_lodl("--version") == (0, f"lodl {version('lodl')}\n", "")


def test_the_help_tells_what_lodl_is_for(run_lodl):
    code, said, _ = run_lodl("--help")
    assert code == 0
    assert "Train models to make better decisions" in said
    assert "--version" in said


def test_short_help_and_no_arguments_show_the_same_help(run_lodl):
    asked = run_lodl("--help")
    assert run_lodl("-h") == asked
    assert run_lodl() == asked


def test_a_command_that_is_not_known_gets_a_suggestion(run_lodl):
    code, _, err = run_lodl("evalute")
    assert code == 2
    assert "evaluate" in err


COMMANDS = ["demo", "check", "fit", "evaluate", "report", "decide", "compare", "store"]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_in_the_help_of_a_command_name_options_that_it_has(name, run_lodl):
    code, said, _ = run_lodl(name, "--help")
    assert code == 0
    options, examples = said.split("Examples:")
    assert f"lodl {name}" in examples
    assert set(re.findall(r"--[a-z-]+", examples)) <= set(re.findall(r"--[a-z-]+", options))


def test_the_options_of_fit_are_shown_in_groups(run_lodl):
    said = run_lodl("fit", "--help")[1]
    titles = re.findall(r"^([A-Z][a-z ]+):$", said, re.MULTILINE)
    assert titles == ["Arguments", "Data", "Model", "Validation", "Solver calls", "Options"]


def test_the_summaries_of_commands_are_whole_sentences(run_lodl):
    said = run_lodl("--help")[1].split("Commands:")[1]
    assert "..." not in said
