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
    """Write one HTML page that shows a run: open it in any browser, send it to anyone.

    Rows of your own are shown like those of our experiments: rows.jsonl has one JSON object a line,
    with at least "domain", "method" and "test", a list of decision qualities, one per model. Shown
    where present: seed, sampler, n_samples, learning_rate and other settings, validation,
    oracle_calls, seconds_sampling, seconds_fitting, seconds_training, gaussian_error,
    empirical_error, data, versions; in Python, help(lodl.report.write_report) tells what they mean.
    A slices.json (what lodl.evaluation.loss_slices returns) adds slices of losses.
    """
    from lodl.report import write_report  # matplotlib: only where needed

    Console(highlight=False).print(f"Report: {write_report(folder, out)}", soft_wrap=True)
