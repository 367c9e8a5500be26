"""What the commands of `lodl reproduce` share: their options, and how they write and show."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.console import Console
from rich.markdown import Markdown

from lodl.cli._names import named
from lodl.errors import InvalidInputError

if TYPE_CHECKING:
    from lodl.benchmarks import Experiment, ScaleOfRun, Setup

Scale: TypeAlias = Annotated[
    str,
    typer.Option(
        help="quick: minutes; paper: 10 domain seeds x 10 models, hours. Either goes on where it "
        "stopped."
    ),
]
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

OUT = Path("runs")
_DEMO = "demo"  # a scale of its own command
_OF_FILE = "portfolio-prices"


def chosen_setups(domains: list[str] | None, prices: Path | None) -> Mapping[str, "Setup"]:
    """Returns the setups of the chosen domains, of all if none is chosen."""
    from lodl import benchmarks  # torch: only where needed

    if prices is None and _OF_FILE in (domains or ()):
        raise InvalidInputError(f"`domain` {_OF_FILE} needs --prices FILE, the prices to use.")
    setups = benchmarks.SETUPS if prices is None else benchmarks.with_prices(prices)
    return {name: named("domain", name, setups) for name in domains or setups}


def chosen_size(scale: str, seeds: int | None, scales: Mapping[str, "ScaleOfRun"]) -> "ScaleOfRun":
    """Returns how much to run: a scale by name, with as many seeds as asked for."""
    size = named("scale", scale, {name: scales[name] for name in scales if name != _DEMO})
    return size if seeds is None else replace(size, n_seeds=seeds)


def write_info(out: Path, name: str, info: Mapping[str, Any]) -> Path:
    """Writes a table or figure as data to `<out>/<name>.json`."""
    return write_text(out / f"{name}.json", json.dumps(info, allow_nan=False))


def write_text(path: Path, text: str) -> Path:
    """Writes a text and a line break to a file, all of it or nothing, and returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    try:
        draft.write_text(f"{text}\n", encoding="utf-8")
        return draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_slices(
    out: Path, experiments: Sequence["Experiment"], setups: Mapping[str, "Setup"]
) -> None:
    """Writes slices of learned losses, of Web Advertising if it is there, else of the first domain.

    Where only rows were copied to the folder, there are no losses to cut, and what is there stays.
    """
    from lodl.benchmarks import slices_info  # torch: only where needed

    shown = "web" if "web" in setups else next(iter(setups))
    slices = slices_info([e for e in experiments if e.domain == shown], out, setups)
    if slices is not None:
        write_info(out, "slices", slices)


def publish_table(out: Path, name: str, info: Mapping[str, Any], *text: str) -> None:
    """Writes a table as data and as Markdown, shows it, and says where it is."""
    write_info(out, name, info)
    path = write_text(out / f"{name}.md", "\n\n".join(text))
    console = Console(highlight=False)
    for part in text:
        console.print(Markdown(part))
    console.print(f"\nRows: {out / 'rows.jsonl'}, table: {path}", soft_wrap=True)
