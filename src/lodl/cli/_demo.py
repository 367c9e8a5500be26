"""`lodl demo`: the main job, end to end."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lodl.cli._options import Jobs
from lodl.cli._reproduce import write_slices
from lodl.errors import DataError

if TYPE_CHECKING:
    from rich.table import Table

    from lodl.benchmarks.paper import QualityTable

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
    out: Annotated[Path, typer.Option(help="Folder for everything that is written.")] = Path(
        "lodl-demo"
    ),
    n_jobs: Jobs = -1,
) -> None:
    """Learn losses for Web Advertising and show what they gain."""
    from rich.console import Console

    from lodl.benchmarks import experiments, paper, runner  # torch: only where needed

    scale, setup = experiments.SCALES["demo"], experiments.SETUPS["web"]
    console = Console(highlight=False)
    console.print(
        "[bold]Web Advertising[/]: from the features of 5 websites predict the click rates of 10 "
        "users, and advertise on the 2 websites that reach the most of them. The solver is asked "
        f"about {scale.n_samples:,} candidate predictions for each of 100 instances, losses are "
        "learned from its answers, and one network is trained on each loss, from "
        f"{scale.n_initialisations} initialisations. What are the decisions worth on 500 others?\n"
    )
    setups = {"web": setup}
    plan = [e for e in experiments.table1_experiments(scale, setups) if e.method in _SHOWN]
    table = paper.table1(runner.run(plan, out, setups=setups, n_jobs=n_jobs))
    console.print(_terminal_table(table))
    loss_path = out / "web-advertising.safetensors"
    _keep_loss(runner.loss_path(out, plan[-1], setup), loss_path)
    console.print(
        "The quality of decisions is 0 for random predictions and 1 for the true labels; mean ± "
        "standard deviation over initialisations. Seconds of one core to sample, fit and train.\n"
    )
    write_slices(out, plan, setups)
    for name, path in [
        ("report", paper.write_report(out)),
        ("learned loss", loss_path),
        ("solver's answers", out / "samples"),
        ("numbers", out / "rows.jsonl"),
    ]:
        console.print(f"{name:<18}{path}", soft_wrap=True)
    console.print(
        "\nOpen the report in a browser. Next: a loss for a problem of your own, `lodl learn "
        "--help`; the paper's tables and figures, `lodl reproduce --help`."
    )


def _keep_loss(learned: Path, path: Path) -> None:
    """Copy the best loss to a name that is easy to find."""
    if not learned.exists():
        raise DataError(
            f"{learned} is missing, though its results are in {path.parent}. Remove that folder, "
            "or name another: `--out`."
        )
    shutil.copyfile(learned, path)


def _terminal_table(quality: "QualityTable") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    for name in ("trained on", "quality"):
        table.add_column(name, no_wrap=True)
    table.add_column("", min_width=_BAR_WIDTH)
    for name in ("oracle calls", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for cell in quality.cells:
        table.add_row(
            cell.method,
            str(cell.ours),
            "█" * round(_BAR_WIDTH * min(max(cell.ours.mean, 0.0), 1.0)),
            f"{cell.oracle_calls:,.0f}",
            f"{sum(cell.seconds.values()):.1f}",
        )
    return table
