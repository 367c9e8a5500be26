"""Commands of other packages: entry points in the group `lodl.commands`.

An entry point names a `typer.Typer` or a function with Typer's annotations. It is loaded when its
command runs, so an installed package costs other commands nothing.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from lodl.errors import LodlError

_GROUP = "lodl.commands"
_OF_BENCHMARKS = ("benchmark", "domains", "report", "reproduce")


class Commands(TyperGroup):
    """The commands of `lodl`, followed by the commands of other packages."""

    def __init__(self, *, commands: Any = None, **options: Any) -> None:
        own = dict(commands or {})
        super().__init__(commands=own | _added(own), **options)


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
            found = self.entry_point.load()
        except (ImportError, AttributeError) as error:
            raise LodlError(
                f"The command {self.name} of {self.package} cannot be loaded: {error}"
            ) from error
        holder = typer.Typer(rich_markup_mode=None, add_completion=False)
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=self.name)
        else:
            holder.command(self.name)(found)
        command: Any = typer.main.get_command(holder)
        return getattr(command, "commands", {self.name: command})[self.name]


class _MissingCommand(TyperCommand):
    """A command of lodl-benchmarks, which is not installed."""

    def make_context(self, *arguments: Any, parent: Any = None, **options: Any) -> Any:
        parent.fail(
            f"`lodl {self.name}` is a command of lodl-benchmarks, which is not installed. In a "
            "clone of lodl's repository, run: pip install -c constraints.txt ./benchmarks"
        )


def _added(own: dict[str, Any]) -> dict[str, Any]:
    """Return the commands of other packages by name, except names that `lodl` itself has."""
    found = sorted(entry_points(group=_GROUP), key=lambda entry_point: entry_point.name)
    added: dict[str, Any] = {one.name: AddedCommand(one) for one in found if one.name not in own}
    missing = [name for name in _OF_BENCHMARKS if name not in own | added]
    return added | {name: _MissingCommand(name, hidden=True) for name in missing}
