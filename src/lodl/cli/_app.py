"""The commands of `lodl`, and those that other packages add.

These are entry points in the group `lodl.commands`, which name a `typer.Typer` or a function with
Typer's annotations. An entry point is loaded when its command runs.
"""

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from lodl._json import package_version
from lodl.cli._demo import demo
from lodl.cli._models import compare, decide, evaluate, fit, report
from lodl.cli._options import Command, Context, Labels, Names, calls_solver
from lodl.cli._tables import read_data
from lodl.errors import LodlError
from lodl.oracle import Oracle, Progress


class AddedCommand(TyperCommand):
    """A command of another package, loaded when it runs."""

    def __init__(self, entry_point: EntryPoint) -> None:
        self.entry_point = entry_point
        self.package = "another package" if entry_point.dist is None else entry_point.dist.name
        super().__init__(entry_point.name, help=f"A command of {self.package}.")

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        return self.load().make_context(*arguments, **options)

    def load(self) -> Any:
        """Return the command itself."""
        try:
            target = self.entry_point.load()
        except (ImportError, AttributeError) as error:
            command = f"The command {self.name} of {self.package}"
            raise LodlError(f"{command} cannot be loaded: {error}") from error
        holder = typer.Typer(rich_markup_mode=None, add_completion=False)
        if isinstance(target, typer.Typer):
            holder.add_typer(target, name=self.name)
        else:
            holder.command(self.name)(target)
        whole: Any = typer.main.get_command(holder)
        return getattr(whole, "commands", {self.name: whole})[self.name]


class _MissingCommand(TyperCommand):
    """A command of lodl-benchmarks, which is not installed."""

    def make_context(self, *arguments: Any, parent: Any = None, **options: Any) -> Any:
        parent.fail(
            f"`lodl {self.name}` is a command of lodl-benchmarks, which is not installed. In a "
            "clone of lodl's repository, run: pip install -c constraints.txt ./benchmarks"
        )


class _Commands(TyperGroup):
    def __init__(self, *, commands: Any = None, **options: Any) -> None:
        every: dict[str, Any] = dict(commands or {})
        for point in sorted(entry_points(group="lodl.commands"), key=lambda point: point.name):
            every.setdefault(point.name, AddedCommand(point))  # none of `lodl` itself is replaced
        for name in ("benchmark", "domains", "reproduce"):
            every.setdefault(name, _MissingCommand(name, hidden=True))
        super().__init__(commands=every, **options)


app = typer.Typer(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: Rich would take longer to import than everything else here
)


@calls_solver()
def check(oracle: Oracle, labels: Labels, context: Context = None, names: Names = None) -> None:
    """Check your problem for mistakes, in about fifty solver calls."""
    _, y, contexts = read_data(None, labels, context, names)
    typer.echo(str(oracle.check(y, context=contexts)))


def store(place: Annotated[str, typer.Argument(help="File that keeps solver answers.")]) -> None:
    """Show how many answers a store holds and lacks, and their cost."""
    typer.echo(f"{place}\n{Progress.read(place)}")


_NEW = "--problem depot.py:Depot --features new.csv --labels new-demand.csv"
_EXAMPLES: dict[Callable[..., None], list[str]] = {  # in the order of the help
    demo: ["lodl demo"],
    check: ["lodl check depot.py:Depot --labels demand.csv --id day"],
    fit: ["lodl fit depot.py:Depot --features weather.csv --labels demand.csv --id day"],
    evaluate: [f"lodl evaluate model {_NEW}"],
    report: [f"lodl report model {_NEW} --out report.html"],
    decide: ["lodl decide model --problem depot.py:Depot --features new.csv --out decisions.csv"],
    compare: ["lodl compare model other-model"],
    store: ["lodl store answers.db"],
}
for command, lines in _EXAMPLES.items():
    examples = "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])
    app.command(cls=Command, epilog=examples)(command)


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
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
