"""`lodl benchmark report`: a page of the results of experiments."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(help="Folder with the rows.jsonl of an experiment.")],
    out: Annotated[
        Path | None, typer.Option(help="File to write. Default: report.html in the folder.")
    ] = None,
) -> None:
    """Write an HTML page with the results of experiments.

    The page is one file that needs nothing but a browser. You can show your own results: rows.jsonl
    has one JSON object per line, with at least "domain", "method" and "test", a list of decision
    qualities, one per model. Optional fields are seed, sampler, n_samples, learning_rate and other
    settings, validation, oracle_calls, seconds_sampling, seconds_fitting, seconds_training,
    gaussian_error, empirical_error, data and versions; in Python,
    help(lodl_benchmarks.paper.write_report) explains them. A slices.json (what
    lodl_benchmarks.slices.loss_slices returns) adds slices of losses. Folders of `lodl benchmark
    peers` get a page with its tables.
    """
    if (folder / "peers.md").is_file():
        from lodl_benchmarks.peers import write_report  # torch and PyEPO: only where needed
    else:
        from lodl_benchmarks.paper import write_report  # matplotlib: only where needed

    typer.echo(f"Report: {write_report(folder, out)}")
