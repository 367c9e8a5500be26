"""What the commands of `lodl reproduce` share: their options, and how they write and show."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.console import Console
from rich.markdown import Markdown

from lodl.cli._names import named

if TYPE_CHECKING:
    from lodl.experiments import ScaleOfRun, Setup

Scale: TypeAlias = Annotated[str, typer.Option(help="quick or paper.")]
Domains: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help="linear, web, portfolio or, with --prices, portfolio-prices; may be given several "
        "times. All if absent."
    ),
]
Prices: TypeAlias = Annotated[
    Path | None, typer.Option(help="CSV of Date, Symbol, Close: adds portfolio-prices.")
]
Out: TypeAlias = Annotated[
    Path, typer.Option(help="Folder of rows, samples, tables and figures; commands share it.")
]
Seeds: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Domain seeds to run; as many as the scale has if absent.")
]
Jobs: TypeAlias = Annotated[int, typer.Option(help="Workers; -1 is all cores.")]

OUT = Path("runs")


def chosen_setups(domains: list[str] | None, prices: Path | None) -> Mapping[str, "Setup"]:
    """Returns the setups of the chosen domains, of all if none is chosen."""
    from lodl import experiments  # torch: only where needed

    setups = experiments.SETUPS if prices is None else experiments.with_prices(prices)
    return {name: named("domain", name, setups) for name in domains or setups}


def chosen_size(scale: str, seeds: int | None, scales: Mapping[str, "ScaleOfRun"]) -> "ScaleOfRun":
    """Returns how much to run: a scale by name, with as many seeds as asked for."""
    size = named("scale", scale, scales)
    return size if seeds is None else replace(size, n_seeds=seeds)


def write_info(out: Path, name: str, info: Mapping[str, Any]) -> Path:
    """Writes a table or figure as data to `<out>/<name>.json`, all of it or nothing."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.json"
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(info, allow_nan=False) + "\n", encoding="utf-8")
    return draft.replace(path)


def publish_table(out: Path, name: str, info: Mapping[str, Any], *text: str) -> None:
    """Writes a table as data and as Markdown, shows it, and says where it is."""
    path = write_info(out, name, info).with_suffix(".md")
    path.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    console = Console(highlight=False)
    for part in text:
        console.print(Markdown(part))
    console.print(f"\nRows: {out / 'rows.jsonl'}, table: {path}", soft_wrap=True)
