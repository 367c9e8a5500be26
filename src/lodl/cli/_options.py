"""Options that several commands share, and the oracle that they configure."""

from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args

import typer
from typer.core import TyperCommand

from lodl.cli._modules import load_problem
from lodl.cli._tables import CONTEXTS, TABLE
from lodl.oracle import Oracle

DATA, MODEL, CALLS, VALIDATION = "Data", "Model", "Solver calls", "Validation"


def option(group: str, text: str, *flags: str) -> Any:
    """Return an option of a command, which its help shows in a group."""
    return typer.Option(*flags, help=text, rich_help_panel=group)


Features: TypeAlias = Annotated[Path, option(DATA, f"Features: {TABLE}.")]
Labels: TypeAlias = Annotated[Path, option(DATA, f"Labels: {TABLE}.")]
Context: TypeAlias = Annotated[Path | None, option(DATA, f"Contexts: {CONTEXTS}.")]
Names: TypeAlias = Annotated[
    str | None, option(DATA, "Column that names the instances, in every file that has it.", "--id")
]
Seed: TypeAlias = Annotated[int, option(MODEL, "Random seed.")]
Jobs: TypeAlias = Annotated[int, option(CALLS, "Number of workers; -1 uses all cores.")]
_ProblemName: TypeAlias = Annotated[
    str, typer.Argument(help="FILE.py:PROBLEM or MODULE:PROBLEM, a lodl.Problem or a subclass.")
]


class Command(TyperCommand):
    """A command whose help shows its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
            record = parameter.get_help_record(ctx)
            if record is not None:
                group = getattr(parameter, "rich_help_panel", None) or kind
                groups.setdefault(group, []).append(record)
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records)


def calls_solver(
    problem: Any = _ProblemName, n_jobs: int = -1
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the problem and the options of an oracle, which is its parameter `oracle`.

    A parameter that the command shares with the oracle is passed to both. Without a problem, which
    may be optional, the oracle is None.
    """
    shared = dict(signature(_oracle).parameters)
    shared["problem"] = shared["problem"].replace(annotation=problem)
    if type(None) in get_args(get_args(problem)[0]):
        shared["problem"] = shared["problem"].replace(default=None)
    shared["n_jobs"] = shared["n_jobs"].replace(default=n_jobs)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = {name: p for name, p in signature(command).parameters.items() if name != "oracle"}

        @wraps(command)
        def run(**options: Any) -> None:
            has_problem = options["problem"] is not None
            oracle = _oracle(**{name: options[name] for name in shared}) if has_problem else None
            command(oracle=oracle, **{name: options[name] for name in own})

        keywords = [p.replace(kind=p.KEYWORD_ONLY) for p in (own | shared).values()]
        run.__signature__ = Signature(keywords)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in keywords}
        return run

    return decorate


def _oracle(
    problem: _ProblemName,
    store: Annotated[
        str | None, option(CALLS, "File that keeps the solver's answers, to resume or reuse them.")
    ] = None,
    n_jobs: Jobs = -1,
    timeout: Annotated[
        float | None, option(CALLS, "Seconds after which a solver call counts as failed.")
    ] = None,
    on_failure: Annotated[
        str, option(CALLS, "raise: stop at the first failed call; skip: leave out failed calls.")
    ] = "raise",
    max_failure_rate: Annotated[
        float, option(CALLS, "With skip, the largest share of calls that may fail.")
    ] = 0.1,
) -> Oracle:
    options: Any = {"on_failure": on_failure, "max_failure_rate": max_failure_rate}
    return Oracle(load_problem(problem), store=store, n_jobs=n_jobs, timeout=timeout, **options)
