"""Options that several commands share, and the oracle that they configure."""

from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from lodl.cli._modules import load_problem
from lodl.cli._tables import CONTEXTS, TABLE
from lodl.oracle import Oracle

Features: TypeAlias = Annotated[Path, typer.Option(help=f"Features: {TABLE}.")]
Labels: TypeAlias = Annotated[Path, typer.Option(help=f"Labels: {TABLE}.")]
Context: TypeAlias = Annotated[Path | None, typer.Option(help=f"Contexts: {CONTEXTS}.")]
Seed: TypeAlias = Annotated[int, typer.Option(help="Random seed.")]
Jobs: TypeAlias = Annotated[int, typer.Option(help="Number of workers; -1 uses all cores.")]
_ProblemName: TypeAlias = Annotated[
    str, typer.Argument(help="MODULE:PROBLEM or FILE.py:PROBLEM, a lodl.Problem or a subclass.")
]


def calls_solver(
    problem: Any = _ProblemName, n_jobs: int = -1
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the problem and the options of an oracle, which is its parameter `oracle`.

    A parameter that the command shares with the oracle is passed to both.
    """
    shared = dict(signature(_oracle).parameters)
    shared["problem"] = shared["problem"].replace(annotation=problem)
    shared["n_jobs"] = shared["n_jobs"].replace(default=n_jobs)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = {name: p for name, p in signature(command).parameters.items() if name != "oracle"}

        @wraps(command)
        def run(**options: Any) -> None:
            oracle = _oracle(**{name: options[name] for name in shared})
            command(oracle=oracle, **{name: options[name] for name in own})

        keywords = [p.replace(kind=p.KEYWORD_ONLY) for p in (own | shared).values()]
        run.__signature__ = Signature(keywords)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in keywords}
        return run

    return decorate


def _oracle(
    problem: _ProblemName,
    store: Annotated[
        str | None,
        typer.Option(help="File that keeps the solver's answers, to resume or reuse them."),
    ] = None,
    n_jobs: Jobs = -1,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds after which a solver call counts as failed.")
    ] = None,
    on_failure: Annotated[
        str,
        typer.Option(help="raise: stop at the first failed call; skip: leave out failed calls."),
    ] = "raise",
    max_failure_rate: Annotated[
        float, typer.Option(help="With skip, the largest share of calls that may fail.")
    ] = 0.1,
) -> Oracle:
    options: Any = {"on_failure": on_failure, "max_failure_rate": max_failure_rate}
    return Oracle(load_problem(problem), store=store, n_jobs=n_jobs, timeout=timeout, **options)
