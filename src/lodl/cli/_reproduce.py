"""`lodl reproduce`: the paper's tables and figures, a command each."""

from collections.abc import Callable
from inspect import signature

import typer

from lodl.cli._jobs import Jobs
from lodl.cli._reproduce_figures import figure_cost, figure_linear, figure_losses
from lodl.cli._reproduce_options import OUT, Out, Prices, Scale, Seeds
from lodl.cli._reproduce_tables import settings, table1, table2a, table2b, table3

reproduce = typer.Typer(help="Run the paper's experiments.", no_args_is_help=True)

IN_ORDER: tuple[Callable[..., None], ...] = (
    table1,
    table2a,
    table2b,
    table3,
    figure_losses,
    figure_linear,
    figure_cost,
)

for command in (*IN_ORDER, settings):
    reproduce.command()(command)


@reproduce.command("all")
def every(
    scale: Scale = "quick",
    prices: Prices = None,
    seeds: Seeds = None,
    out: Out = OUT,
    n_jobs: Jobs = -1,
) -> None:
    """Every table and figure, one after the other; what is there already is not run again."""
    options = {"scale": scale, "prices": prices, "seeds": seeds, "out": out, "n_jobs": n_jobs}
    for command in IN_ORDER:
        taken = signature(command).parameters.keys() & options.keys()
        command(**{name: options[name] for name in taken})
