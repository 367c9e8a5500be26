"""`lodl report`: a run as one page."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run: its rows.jsonl and data files.")],
    out: Annotated[
        Path | None, typer.Option(help="The file to write; report.html in the folder if absent.")
    ] = None,
) -> None:
    """Write one HTML page that shows a run: open it in any browser, send it to anyone."""
    from lodl.report import write_report  # matplotlib: only where needed

    Console(highlight=False).print(f"Report: {write_report(folder, out)}", soft_wrap=True)
