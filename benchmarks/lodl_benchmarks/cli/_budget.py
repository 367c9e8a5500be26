"""`lodl reproduce budget`: what a budget for treatments achieves, by method."""

from pathlib import Path
from typing import Annotated

import typer

from lodl.cli._modules import named
from lodl_benchmarks.cli._markdown import show_tables


def budget(
    setting: Annotated[
        list[str] | None, typer.Option("--settings", help="linear or uneven; both if absent.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option("--methods", help="Name of a method; repeat for several.")
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option("--seeds", help="Data seed; repeat for several. 0 to 4.")
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1000, help="Customers of a trial.")] = 100_000,
    way: Annotated[
        float, typer.Option(min=0, max=1, help="Way of labels to predictions of other folds.")
    ] = 1.0,
    out: Path = Path("runs/budget"),
) -> None:
    """Treatments for customers within a budget: two stages, a greedy rule, and the learner."""
    from lodl_benchmarks import budget as room  # LightGBM: only where needed

    settings = [name for name in setting or room.SETTINGS if named("settings", name, room.SETTINGS)]
    methods = [name for name in method or room.METHODS if named("methods", name, room.METHODS)]
    seeds = range(5) if seed is None else seed
    rows = room.run(room.plan(settings, methods, seeds), out, n=n, way=way)
    show_tables(room.tables(rows), out, "budget.md")
