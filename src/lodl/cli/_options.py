"""Options that several commands share, and the oracle that they configure."""

from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from lodl.cli._modules import load_problem
from lodl.cli._tables import CONTEXTS, TABLE
from lodl.errors import InvalidInputError
from lodl.oracle import Oracle

Features: TypeAlias = Annotated[Path, typer.Option(help=f"Features: {TABLE}.")]
Labels: TypeAlias = Annotated[Path, typer.Option(help=f"Labels: {TABLE}.")]
Context: TypeAlias = Annotated[Path | None, typer.Option(help=f"Contexts: {CONTEXTS}.")]
Seed: TypeAlias = Annotated[int, typer.Option(help="Random seed.")]


def _check_jobs(n_jobs: int) -> int:
    if n_jobs == 0:
        raise InvalidInputError("`n_jobs` must be a whole number other than 0 (-1 is all cores).")
    return n_jobs


Jobs: TypeAlias = Annotated[
    int, typer.Option(help="Number of workers; -1 uses all cores.", callback=_check_jobs)
]


def calls_solver(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the argument PROBLEM and the options of an oracle.

    The command gets the oracle as its parameter `oracle`. An option that is also one of its own
    parameters is passed on.
    """
    own, shared = signature(command).parameters, signature(_oracle).parameters

    @wraps(command)
    def run(**options: Any) -> None:
        oracle = _oracle(**{name: options[name] for name in shared})
        command(oracle=oracle, **{name: options[name] for name in own if name != "oracle"})

    problem, *others = shared.values()
    further = [own[name] for name in own if name not in ("oracle", *shared)]
    ordered = (problem, *further, *others)
    keywords = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in ordered]
    run.__signature__ = Signature(keywords)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
    return run


def _oracle(
    problem: Annotated[
        str,
        typer.Argument(help="MODULE:PROBLEM or FILE.py:PROBLEM, a lodl.Problem or a subclass."),
    ],
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
    return Oracle(
        load_problem(problem),
        store=store,
        n_jobs=n_jobs,
        timeout=timeout,
        on_failure=on_failure,  # type: ignore[arg-type]  # the oracle checks it
        max_failure_rate=max_failure_rate,
    )
