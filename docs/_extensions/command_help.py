"""The directive `command-help`: the help of every command, as the terminal shows it."""

from collections.abc import Iterator
from typing import Any

import click
import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from lodl.cli._app import AddedCommand, app


class CommandHelp(SphinxDirective):
    """Write a section for each command of `lodl`."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        return list(self._sections(typer.main.get_command(app), "lodl", None))

    def _sections(
        self, command: click.Command, name: str, parent: click.Context | None
    ) -> Iterator[nodes.Node]:
        context = click.Context(command, info_name=name, parent=parent, max_content_width=88)
        title = context.command_path
        section = nodes.section(ids=[nodes.make_id(title)], names=[title])
        text = command.get_help(context)
        section += nodes.title(title, title)
        section += nodes.literal_block(text, text, language="none")
        self.state.document.note_explicit_target(section)
        yield section
        for sub in getattr(command, "commands", {}).values():
            if isinstance(sub, AddedCommand):
                sub = sub.load()
            yield from self._sections(sub, sub.name or "", context)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
