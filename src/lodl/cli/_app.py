"""The commands, one file each."""

import typer

from lodl.cli._demo import demo
from lodl.cli._learn import learn
from lodl.cli._report import report
from lodl.cli._reproduce import reproduce

app = typer.Typer(
    help="Learn, from your own solver, a loss that knows what prediction errors cost.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(learn)
app.command()(report)
app.add_typer(reproduce, name="reproduce")
