"""`lodl reproduce`: the paper's tables and figures, a command each."""

import typer

from lodl.cli._reproduce_tables import settings, table1

reproduce = typer.Typer(help="Run the paper's experiments.", no_args_is_help=True)

IN_ORDER = (table1,)

for command in (*IN_ORDER, settings):
    reproduce.command()(command)
