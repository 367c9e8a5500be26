"""The commands."""

from pathlib import Path
from typing import Annotated

import typer

from lodl._json import package_version
from lodl.cli._added import Commands
from lodl.cli._compare import compare
from lodl.cli._decide import decide
from lodl.cli._demo import demo
from lodl.cli._fit import fit
from lodl.cli._learn import learn
from lodl.cli._modules import load_problem
from lodl.cli._options import PROBLEM
from lodl.cli._tables import CONTEXTS, TABLE, read_context, read_labels

app = typer.Typer(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: Rich would take longer to import than everything else here
)
app.command()(demo)
app.command()(fit)
app.command()(decide)
app.command()(learn)
app.command()(compare)


@app.command()
def check(
    problem: Annotated[str, typer.Argument(help=PROBLEM)],
    labels: Annotated[Path, typer.Option(help=f"Labels: {TABLE}.")],
    context: Annotated[Path | None, typer.Option(help=f"Contexts: {CONTEXTS}.")] = None,
) -> None:
    """Check your problem for mistakes, in about fifty solver calls."""
    from lodl.testing import check_problem

    y = read_labels(labels)
    contexts = None if context is None else read_context(context)
    typer.echo(str(check_problem(load_problem(problem), y, context=contexts)))


@app.command()
def store(
    place: Annotated[str, typer.Argument(help="File that keeps solver answers.")],
) -> None:
    """Show what a store of solver answers holds, and what is missing."""
    from lodl.oracle import Progress

    typer.echo(f"{place}\n{Progress.read(place)}")


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"lodl {package_version()}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Train models to make better decisions, with a loss learned from your solver."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
