"""`lodl reproduce`: the paper's tables."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from lodl.cli._names import named

if TYPE_CHECKING:
    from lodl.experiments import Setup

reproduce = typer.Typer(help="Run the paper's experiments.", no_args_is_help=True)

_Scale = Annotated[str, typer.Option(help="quick or paper.")]
_Domains = Annotated[
    list[str] | None,
    typer.Option(
        help="linear, web, portfolio or, with --prices, portfolio-prices; may be given several "
        "times. All if absent."
    ),
]
_Prices = Annotated[
    Path | None, typer.Option(help="CSV of Date, Symbol, Close: adds portfolio-prices.")
]
_Jobs = Annotated[int, typer.Option(help="Workers; -1 is all cores.")]


@reproduce.command()
def table1(
    scale: _Scale = "quick",
    domain: _Domains = None,
    prices: _Prices = None,
    out: Annotated[Path, typer.Option(help="Folder of rows and samples.")] = Path("runs/table1"),
    n_jobs: _Jobs = -1,
) -> None:
    """Decision quality of every loss in every domain, beside the paper's figures."""
    from lodl import experiments  # torch: only where needed

    setups = _setups(prices)
    plan = experiments.table1_experiments(
        named("scale", scale, experiments.SCALES), setups, _chosen(domain, setups)
    )
    cells = experiments.table1_info(experiments.run(plan, out, setups=setups, n_jobs=n_jobs))
    table = experiments.table1_markdown(cells, setups)
    costs = experiments.costs_markdown(cells, setups)
    (out / "table1.md").write_text(f"{table}\n\n{costs}\n", encoding="utf-8")
    console = Console(highlight=False)
    console.print(Markdown(table))
    console.print(
        "Normalised test decision quality: mean ± standard deviation over runs (the paper's in "
        "brackets;\n* where the two intervals do not meet).\n"
    )
    console.print(Markdown(costs))
    console.print(
        "Seconds of one core per domain seed; the samples are shared by all learned losses.\n"
        f"Rows: {out / 'rows.jsonl'}, tables: {out / 'table1.md'}"
    )


@reproduce.command()
def settings(
    scale: _Scale = "quick",
    domain: _Domains = None,
    prices: _Prices = None,
    out: Annotated[Path, typer.Option(help="Folder of rows and samples.")] = Path("runs/settings"),
    n_jobs: _Jobs = -1,
) -> None:
    """Choose sampler, surrogate and learning rates on validation data of seeds of their own."""
    from lodl import experiments  # torch: only where needed

    setups = _setups(prices)
    n_samples = named("scale", scale, experiments.SCALES).n_samples
    plan = experiments.tuning_experiments(setups, _chosen(domain, setups), n_samples)
    rows = experiments.run(plan, out, setups=setups, n_jobs=n_jobs)
    Console(highlight=False).print_json(json.dumps(experiments.choose(rows)))


def _setups(prices: Path | None) -> Mapping[str, "Setup"]:
    from lodl import experiments

    return experiments.SETUPS if prices is None else experiments.with_prices(prices)


def _chosen(domains: list[str] | None, setups: Mapping[str, "Setup"]) -> list[str]:
    for name in domains or []:
        named("domain", name, setups)
    return domains or list(setups)
