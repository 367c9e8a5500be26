"""`lodl reproduce`: the paper's tables and figures, a command each."""

import typer

from lodl.cli._reproduce_figures import figure_cost, figure_linear, figure_losses
from lodl.cli._reproduce_options import OUT, Jobs, Out, Scale
from lodl.cli._reproduce_tables import settings, table1, table2a, table2b, table3

reproduce = typer.Typer(help="Run the paper's experiments.", no_args_is_help=True)

IN_ORDER = (table1, table2a, table2b, table3, figure_losses, figure_linear, figure_cost)

for command in (*IN_ORDER, settings):
    reproduce.command()(command)


@reproduce.command("all")
def every(scale: Scale = "quick", out: Out = OUT, n_jobs: Jobs = -1) -> None:
    """Every table and figure, one after the other; what is there already is not run again."""
    for command in IN_ORDER:
        command(scale=scale, out=out, n_jobs=n_jobs)
