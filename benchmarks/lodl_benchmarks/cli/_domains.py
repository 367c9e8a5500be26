"""`lodl domains`: the problems with data, and how long a solver call takes."""

import inspect
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from lodl._arrays import context_of
from lodl.cli._modules import named

if TYPE_CHECKING:
    from lodl.domains import Domain

_N_CALLS = 100
_SECONDS = 0.2  # a batch that takes longer is not followed by a larger one


def domains(
    name: Annotated[str | None, typer.Argument(help="A domain to describe in full.")] = None,
) -> None:
    """List the ready-made problems, and how long a solver call takes."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from lodl_benchmarks.domains import DOMAINS

    console = Console(highlight=False)
    if name is not None:
        console.print(inspect.getdoc(named("name", name, DOMAINS)), soft_wrap=True, markup=False)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True)
    for title in ("instances", "label", "a call"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("decision")
    for key, make in DOMAINS.items():
        table.add_row(key, *_row(make))
    console.print(table)
    console.print(
        "Columns: training, validation and test instances; the shape of a label; the CPU time of "
        f"a solver call, just measured in batches of up to {_N_CALLS}.\n`lodl domains {key}` "
        f'describes one of them; in Python, `lodl_benchmarks.domains.DOMAINS["{key}"]()` makes it.'
    )


def _row(make: Callable[..., "Domain"]) -> tuple[str, str, str, str]:
    """Return a domain's sizes, its label's shape, the time of a call, and what is decided."""
    summary = (inspect.getdoc(make) or "").split("\n")[0]  # "Knapsack: pack the items, by ..."
    decision = summary.split(": ")[-1].split(",")[0].rstrip(".")
    sizes = "/".join(map(str, inspect.signature(make).parameters["sizes"].default))
    domain = make(sizes=(_N_CALLS, 1, 1))
    shape = " x ".join(map(str, domain.splits.train.y.shape[1:]))
    return sizes, shape, _in_words(_seconds_per_call(domain)), decision


def _seconds_per_call(domain: "Domain") -> float:
    """Return the time of an oracle call, of as many predictions at once as are quickly solved."""
    train = domain.splits.train
    n, context = 1, context_of(train.context, 0)
    while True:
        start = time.process_time()
        domain.problem.solve_many(train.y[:n], context)
        seconds = time.process_time() - start
        if n == _N_CALLS or seconds > _SECONDS:
            return seconds / n
        n = min(_N_CALLS, 10 * n)


def _in_words(seconds: float) -> str:
    unit, size = ("ms", 1e-3) if seconds >= 1e-3 else ("µs", 1e-6)
    amount = seconds / size
    return f"{amount:.0f} {unit}" if amount >= 9.5 else f"{amount:.1f} {unit}"
