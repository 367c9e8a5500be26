"""`lodl benchmark`: how well methods decide, and for how many oracle calls."""

from pathlib import Path
from typing import Annotated

import typer

from lodl.cli._options import Jobs, named

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
            help="path, large-path, knapsack, web or newsvendor; may be given several times. "
            "All if absent.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of data seeds.")] = 3,
    out: Annotated[
        Path, typer.Option(help="Folder of rows, answers and tables; a run resumes there.")
    ] = Path("runs/rounds"),
    n_jobs: Jobs = -1,
) -> None:
    """Decision families at labels and in rounds, beside SPO+ and 2-stage, with their calls."""
    from rich.console import Console
    from rich.markdown import Markdown

    from lodl.benchmarks import rounds as room  # torch: only where needed
    from lodl.report.parts import write_text

    chosen = [name for name in task or room.TASKS if named("tasks", name, room.TASKS)]
    rows = room.run(room.plan(chosen, seeds), out, n_jobs=n_jobs)
    text = "\n\n".join(f"## {one.caption}\n\n{one.markdown()}" for one in room.tables(rows))
    path = write_text(out / "rounds.md", f"{text}\n")
    Console(highlight=False).print(Markdown(text))
    typer.echo(f"\nRows: {out / 'rows.jsonl'}, tables: {path}")
