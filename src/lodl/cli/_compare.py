"""`lodl compare`: saved models side by side."""

from pathlib import Path
from typing import Annotated

import typer

from lodl.cli._markdown import print_markdown
from lodl.errors import InvalidInputError


def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders that lodl fit wrote; the others are compared with the first."),
    ],
) -> None:
    """Compare saved models by their validation regret.

    Differences are paired by instance and have 95% intervals.
    """
    from lodl.learning import load_record
    from lodl.report import Comparison

    names = [folder.name or str(folder) for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    if len(set(names)) < max(len(names), 2):
        raise InvalidInputError("`folders` must be at least two different folders.")
    comparison = Comparison(
        {name: load_record(folder) for name, folder in zip(names, folders, strict=True)}
    )
    print_markdown(comparison.table().markdown())
    for sentence in comparison.sentences():
        typer.echo(sentence)
