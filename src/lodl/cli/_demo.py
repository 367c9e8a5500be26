"""`lodl demo`: the main job, end to end."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from lodl.cli._jobs import Jobs
from lodl.cli._reproduce_options import write_info, write_slices
from lodl.errors import DataError

if TYPE_CHECKING:
    from lodl.benchmarks import Cell

_BAR_WIDTH = 10
_SHOWN = (
    "Random",
    "Optimal",
    "Constant",
    "2-stage",
    "DirectedWeightedMSE",
    "Quadratic",
    "ConvexDirectedQuadratic",
)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for all that is written.")] = Path("lodl-demo"),
    n_jobs: Jobs = -1,
) -> None:
    """Learn losses for Web Advertising, train on them, and show what was gained."""
    from lodl import benchmarks, report  # torch and matplotlib: only where needed

    scale, setup = benchmarks.SCALES["demo"], benchmarks.SETUPS["web"]
    console = Console(highlight=False)
    console.print(
        "[bold]Web Advertising[/]: from the features of 5 websites predict the click rates of 10 "
        "users, and advertise on the 2 websites that reach the most of them. The solver is asked "
        f"about {scale.n_samples:,} candidate predictions for each of 100 instances, losses are "
        "learned from its answers, and one network is trained on each loss, from "
        f"{scale.n_initialisations} initialisations. What are the decisions worth on 500 others?\n"
    )
    plan = [e for e in benchmarks.table1_experiments(scale, domains=["web"]) if e.method in _SHOWN]
    rows = benchmarks.run(plan, out, n_jobs=n_jobs)
    cells = benchmarks.table1_info(rows)
    console.print(_table({method: cells[method, "web"] for method in _SHOWN}))
    loss_path = out / "web-advertising.safetensors"
    _keep_loss(benchmarks.loss_path(out, plan[-1], setup), loss_path)
    console.print(
        "The quality of decisions is 0 for random predictions and 1 for the true labels; mean ± "
        "standard deviation over initialisations. Seconds of one core to sample, fit and train.\n"
    )
    write_info(out, "table3", benchmarks.table3_info(rows))
    write_slices(out, plan, benchmarks.SETUPS)
    console.print(f"report            {report.write_report(out)}", soft_wrap=True)
    console.print(f"learned loss      {loss_path}", soft_wrap=True)
    console.print(f"solver's answers  {out / 'samples'}", soft_wrap=True)
    console.print(f"figures           {out / 'rows.jsonl'}\n", soft_wrap=True)
    console.print(
        "Open the report in a browser. Next: a loss for a problem of your own, `lodl learn "
        "--help`; the paper's tables and figures, `lodl reproduce --help`."
    )


def _keep_loss(learned: Path, path: Path) -> None:
    """Gives the best loss a name that people find."""
    if not learned.exists():
        raise DataError(
            f"{learned} is gone, though its results are in {path.parent}. Remove that folder, or "
            "name another: `--out`."
        )
    shutil.copyfile(learned, path)


def _table(cells: Mapping[str, "Cell"]) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for name in ("trained on", "quality"):
        table.add_column(name, no_wrap=True)
    table.add_column("", min_width=_BAR_WIDTH)
    for name in ("oracle calls", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for method, cell in cells.items():
        table.add_row(
            method,
            str(cell.ours),
            "█" * round(_BAR_WIDTH * float(np.clip(cell.ours.mean, 0, 1))),
            f"{cell.oracle_calls:,.0f}",
            f"{sum(cell.seconds.values()):.1f}",
        )
    return table
