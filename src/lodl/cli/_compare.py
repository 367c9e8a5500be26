"""`lodl compare`: saved models side by side."""

from pathlib import Path
from typing import Annotated

import typer

from lodl.errors import InvalidInputError
from lodl.learning import load_result
from lodl.report import Comparison


def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders that lodl fit wrote; the others are compared with the first."),
    ],
) -> None:
    """Compare saved models by their validation regret.

    Differences are paired by instance and have 95% intervals.
    """
    names = [folder.name or str(folder) for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    if len(set(names)) < max(len(names), 2):
        raise InvalidInputError("`folders` must be at least two different folders.")
    results = {name: load_result(folder) for name, folder in zip(names, folders, strict=True)}
    typer.echo(str(Comparison(results)))
