"""The commands."""

from pathlib import Path
from typing import Annotated

import typer

from lodl._version import package_version
from lodl.cli._benchmark import benchmark
from lodl.cli._compare import compare
from lodl.cli._decide import decide
from lodl.cli._demo import demo
from lodl.cli._domains import domains
from lodl.cli._fit import fit
from lodl.cli._learn import learn
from lodl.cli._modules import load_problem
from lodl.cli._options import PROBLEM
from lodl.cli._reproduce import reproduce
from lodl.cli._tables import CONTEXTS, TABLE, read_context, read_labels

app = typer.Typer(
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
app.command()(domains)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder with the rows.jsonl of an experiment.")],
    out: Annotated[
        Path | None, typer.Option(help="File to write. Default: report.html in the folder.")
    ] = None,
) -> None:
    """Write an HTML page with the results of experiments.

    It is one file that needs nothing but a browser. You can show results of your own: rows.jsonl
    has one JSON object per line, with at least "domain", "method" and "test", a list of decision
    qualities, one per model. Optional fields are seed, sampler, n_samples, learning_rate and other
    settings, validation, oracle_calls, seconds_sampling, seconds_fitting, seconds_training,
    gaussian_error, empirical_error, data and versions; in Python, help(lodl.report.write_report)
    explains them. A slices.json (what lodl.evaluation.loss_slices returns) adds slices of losses. A
    folder of `lodl benchmark peers` has a page of its own.
    """
    if (folder / "peers.md").is_file():
        from lodl.benchmarks.peers import write_report  # torch and PyEPO: only where needed
    else:
        from lodl.benchmarks.paper import write_report  # matplotlib: only where needed

    typer.echo(f"Report: {write_report(folder, out)}")


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
    from lodl.oracle import open_store

    typer.echo(f"{place}\n{open_store(place).progress}")


app.add_typer(reproduce, name="reproduce")
app.add_typer(benchmark, name="benchmark")


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
