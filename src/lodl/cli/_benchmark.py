"""`lodl benchmark`: how well methods decide, and for how many oracle calls."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lodl.cli._options import Jobs, named

if TYPE_CHECKING:
    from lodl.report import Table

benchmark = typer.Typer(
    help="Compare methods on tasks beyond the paper's.", no_args_is_help=True, rich_markup_mode=None
)


@benchmark.callback()
def benchmarks() -> None:
    """Compare methods on tasks beyond the paper's."""


@benchmark.command()
def rounds(
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--tasks",
            help="path, large-path, knapsack, plain-knapsack, web or newsvendor; may be given "
            "several times. All if absent.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of data seeds.")] = 3,
    out: Annotated[
        Path, typer.Option(help="Folder of rows, answers and tables; a run resumes there.")
    ] = Path("runs/rounds"),
    n_jobs: Jobs = -1,
) -> None:
    """Decision families at labels and in rounds, beside SPO+ and 2-stage, with their calls."""
    from lodl.benchmarks import rounds as room  # torch: only where needed

    chosen = [name for name in task or room.TASKS if named("tasks", name, room.TASKS)]
    rows = room.run(room.plan(chosen, seeds), out, n_jobs=n_jobs)
    _show(room.tables(rows), out, "rounds.md")


@benchmark.command()
def learner(
    task: Annotated[
        list[str] | None,
        typer.Option("--tasks", help="Name of a task; may be given several times. All if absent."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--models",
            help="linear, mlp, xgboost, lightgbm, catboost or forest; may be given several times. "
            "linear if absent.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of data seeds.")] = 3,
    first_seed: Annotated[int, typer.Option(min=0, help="The first data seed.")] = 1,
    out: Annotated[
        Path, typer.Option(help="Folder of rows and tables; a run resumes there.")
    ] = Path("runs/learner"),
) -> None:
    """The learner with its defaults beside 2-stage trained with equal care, on every domain."""
    from lodl.benchmarks import learner as room  # torch: only where needed

    tasks = [name for name in task or room.TASKS if named("tasks", name, room.TASKS)]
    models = model or ["linear"]
    for name in models:
        named("models", name, room.MODELS)
    data_seeds = range(first_seed, first_seed + seeds)
    rows = room.run(room.plan(tasks, models, data_seeds), out)
    _show(room.tables(rows), out, "learner.md")


def _show(tables: "Sequence[Table]", out: Path, name: str) -> None:
    """Print tables, and write them to a file beside their rows."""
    from rich.console import Console
    from rich.markdown import Markdown

    from lodl.report.parts import write_text

    text = "\n\n".join(f"## {one.caption}\n\n{one.markdown()}" for one in tables)
    path = write_text(out / name, f"{text}\n")
    Console(highlight=False).print(Markdown(text))
    typer.echo(f"\nRows: {out / 'rows.jsonl'}, tables: {path}")


@benchmark.command()
def peers(
    task: Annotated[
        list[str] | None,
        typer.Option("--tasks", help="Task; may be given several times. The scale's if absent."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--methods", help="Method; may be given several times. The scale's if absent."
        ),
    ] = None,
    scale: Annotated[str, typer.Option(help="quick (ten minutes) or full (resumable).")] = "quick",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of data seeds. The scale's if absent.")
    ] = None,
    first_seed: Annotated[
        int | None, typer.Option(min=0, help="The first data seed. The scale's if absent.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder of rows, tables, picture and page; a run resumes there.")
    ] = Path("runs/peers"),
    n_jobs: Jobs = -1,
) -> None:
    """Our learner beside 2-stage and PyEPO's methods, with the oracle calls of each."""
    from lodl.benchmarks import peers as room  # torch and PyEPO: only where needed
    from lodl.report import save_figure

    chosen = named("scale", scale, room.SCALES)
    names = [name for name in task or chosen.tasks if named("tasks", name, room.TASKS)]
    methods = [name for name in method or chosen.methods if named("methods", name, room.METHODS)]
    first = chosen.seeds.start if first_seed is None else first_seed
    trials = room.plan(names, methods, range(first, first + (seeds or len(chosen.seeds))))
    tasks = {name: room.TASKS[name].averaging(chosen.n_initialisations) for name in names}
    rows = room.run(trials, out, tasks=tasks, n_jobs=n_jobs)
    svg, png = save_figure(room.draw_peers(rows), out / "peers")
    _show(room.tables(rows), out, "peers.md")
    typer.echo(f"Picture: {svg} and {png}, page: {room.write_report(out)}")
