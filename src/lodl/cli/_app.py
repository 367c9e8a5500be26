"""The commands, one file each."""

from importlib.metadata import version
from typing import Annotated

import typer

from lodl.cli._demo import demo
from lodl.cli._learn import learn
from lodl.cli._report import report
from lodl.cli._reproduce import reproduce

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(learn)
app.command()(report)
app.add_typer(reproduce, name="reproduce")


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"lodl {version('lodl')}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Learn, from your own solver, a loss that knows what prediction errors cost."""
