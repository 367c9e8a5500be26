"""`lodl benchmark`: how well methods decide, and for how many solver calls."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from lodl.cli._modules import named
from lodl_benchmarks.cli._jobs import Jobs
from lodl_benchmarks.cli._markdown import show_tables

_SEVERAL = "repeat it for several. Default: all, or those of the scale"
Tasks: TypeAlias = Annotated[
    list[str] | None, typer.Option("--tasks", help=f"Name of a task; {_SEVERAL}.")
]
Models: TypeAlias = Annotated[
    list[str] | None, typer.Option("--models", help=f"Name of a model; {_SEVERAL}.")
]
Methods: TypeAlias = Annotated[
    list[str] | None, typer.Option("--methods", help=f"Name of a method; {_SEVERAL}.")
]
Seeds: TypeAlias = Annotated[int, typer.Option(min=1, help="Number of data seeds.")]
Out: TypeAlias = Annotated[
    Path, typer.Option(help="Folder of rows, tables and pictures; a run resumes there.")
]

benchmark = typer.Typer(
    help="Compare methods on further tasks.", no_args_is_help=True, rich_markup_mode=None
)


@benchmark.callback()
def benchmarks() -> None:
    """Compare methods on further tasks."""


@benchmark.command()
def rounds(
    task: Tasks = None,
    method: Methods = None,
    seeds: Seeds = 3,
    out: Out = Path("runs/rounds"),
    n_jobs: Jobs = -1,
) -> None:
    """Decision families with and without rounds, SPO+ and others. Shows all rows of `out`."""
    from lodl_benchmarks import rounds as room  # torch: only where needed
    from lodl_benchmarks.pages import read_json_rows

    chosen = [name for name in task or room.TASKS if named("tasks", name, room.TASKS)]
    methods = [name for name in method or room.METHODS if named("methods", name, room.METHODS)]
    trials = [trial for trial in room.plan(chosen, seeds) if trial.method in methods]
    room.run(trials, out, n_jobs=n_jobs)
    rows = [values for _, values in read_json_rows(out / "rows.jsonl")]
    show_tables(room.tables(rows), out, "rounds.md")


@benchmark.command()
def learner(
    task: Tasks = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--models",
            help="linear, mlp, xgboost, lightgbm, catboost or forest; repeat it for several. "
            "Default: linear.",
        ),
    ] = None,
    seeds: Seeds = 3,
    first_seed: Annotated[int, typer.Option(min=0, help="The first data seed.")] = 1,
    out: Out = Path("runs/learner"),
) -> None:
    """The learner with its defaults against squared error. Shows all rows of `out`."""
    from lodl_benchmarks import learner as room  # torch: only where needed
    from lodl_benchmarks.pages import read_json_rows

    tasks = [name for name in task or room.TASKS if named("tasks", name, room.TASKS)]
    models = model or ["linear"]
    for name in models:
        named("models", name, room.MODELS)
    data_seeds = range(first_seed, first_seed + seeds)
    room.run(room.plan(tasks, models, data_seeds), out)
    rows = [values for _, values in read_json_rows(out / "rows.jsonl")]
    show_tables(room.tables(rows), out, "learner.md")


@benchmark.command()
def real(
    data: Annotated[Path, typer.Option(help="Folder of the data files: results/real/README.md.")],
    task: Tasks = None,
    model: Models = None,
    method: Methods = None,
    seeds: Annotated[
        int, typer.Option(min=0, help="Number of random splits, for tasks that have them.")
    ] = 10,
    choosing: Annotated[
        bool, typer.Option(help="Split the training period only, to choose methods by.")
    ] = False,
    out: Out = Path("runs/real"),
) -> None:
    """The learner against simple methods, on real data. Tables show all rows of the folder."""
    from lodl_benchmarks import real as room  # torch: only where needed

    tasks = [name for name in task or room.TASKS if named("tasks", name, room.TASKS)]
    models = [name for name in model or room.MODELS if named("models", name, room.MODELS)]
    known = dict.fromkeys(room.METHODS, True)
    methods = [name for name in method or known if named("methods", name, known)]
    room.run(room.plan(data, tasks, models, methods, seeds, choosing=choosing), out)
    rows = room.stored_rows(out, choosing=choosing)
    show_tables(room.tables(rows), out, "choosing.md" if choosing else "real.md")


@benchmark.command()
def peers(
    task: Tasks = None,
    method: Methods = None,
    scale: Annotated[str, typer.Option(help="quick (ten minutes) or full (resumable).")] = "quick",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of data seeds. Default: those of the scale.")
    ] = None,
    first_seed: Annotated[
        int | None, typer.Option(min=0, help="The first data seed. Default: those of the scale.")
    ] = None,
    out: Out = Path("runs/peers"),
    n_jobs: Jobs = -1,
) -> None:
    """The learner against PyEPO's methods and squared error. Shows all rows of `out`."""
    from lodl_benchmarks import peers as room  # torch and PyEPO: only where needed
    from lodl_benchmarks.pages import read_json_rows

    chosen = named("scale", scale, room.SCALES)
    names = [name for name in task or chosen.tasks if named("tasks", name, room.TASKS)]
    methods = [name for name in method or chosen.methods if named("methods", name, room.METHODS)]
    first = chosen.seeds.start if first_seed is None else first_seed
    trials = room.plan(names, methods, range(first, first + (seeds or len(chosen.seeds))))
    tasks = {name: room.TASKS[name].averaging(chosen.n_initialisations) for name in names}
    room.run(trials, out, tasks=tasks, n_jobs=n_jobs)
    kept = [values for _, values in read_json_rows(out / "rows.jsonl")]
    show_tables(room.tables(kept), out, "peers.md")
    pictures = room.write_pictures(kept, out)
    shown = ", ".join(map(str, pictures)) or f"none without rows of 2-stage and {room.OURS}"
    typer.echo(f"Pictures: {shown}; page: {room.write_report(out)}")
