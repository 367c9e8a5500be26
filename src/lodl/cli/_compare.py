"""`lodl compare`: saved models side by side."""

from pathlib import Path
from typing import Annotated

import typer

from lodl.errors import InvalidInputError


def compare(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of saved models; the first is the yardstick.")
    ],
    out: Annotated[Path | None, typer.Option(help="Page to write, an HTML file.")] = None,
) -> None:
    """Compare fits by their held-out decisions, with paired differences and intervals."""
    from rich.console import Console
    from rich.markdown import Markdown

    from lodl.learning import load_record
    from lodl.report import Comparison  # matplotlib: only where needed

    names = [folder.name or str(folder) for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    if len(set(names)) < max(len(names), 2):
        raise InvalidInputError("`folders` must be two or more different folders.")
    comparison = Comparison(
        {name: load_record(folder) for name, folder in zip(names, folders, strict=True)}
    )
    Console(highlight=False).print(Markdown(comparison.table().markdown()))
    for sentence in comparison.sentences():
        typer.echo(sentence)
    if out is not None:
        typer.echo(f"Page: {comparison.write(out)}")
