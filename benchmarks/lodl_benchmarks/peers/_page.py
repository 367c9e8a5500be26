"""The page: what was to be shown, the picture and the tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lodl.report import Table
from lodl.report.page import Block, Section, render
from lodl.report.style import inline_svg
from lodl_benchmarks.pages import read_json_rows, write_page
from lodl_benchmarks.peers._draw import draw_peers, drawn_tasks
from lodl_benchmarks.peers._standings import verdict
from lodl_benchmarks.peers._summary import scores
from lodl_benchmarks.peers._tables import summary_tables, task_tables

_FOOTER = (
    "Regret is what decisions cost more than the best ones, as a share of what those cost. All "
    "methods share one solver, one training loop and one treatment; lodl has its defaults. ± is "
    "the standard error of a difference, paired by data seed and test instance."
)


def write_report(folder: str | Path, path: str | Path | None = None) -> Path:
    """Write one HTML file that shows a run of `lodl benchmark peers`."""
    return write_page(folder, path, _page)


def _page(folder: Path) -> str:
    rows = [values for _, values in read_json_rows(folder / "rows.jsonl")]
    counts = {name: len({row[name] for row in rows}) for name in ("method", "task", "seed")}
    n_methods, n_tasks, n_seeds = (f"{n} {name}{'s' * (n != 1)}" for name, n in counts.items())
    return render(
        title="Decisions and what they cost to learn",
        scope=f"{n_methods} on {n_tasks}, {n_seeds}, from {folder.resolve().name}",
        verdict=verdict(scores(rows)),
        sections=_sections(rows),
        footer=_FOOTER,
    )


def _sections(rows: Sequence[Mapping[str, Any]]) -> list[Section]:
    tables = [
        Section("together", "All tasks together", "", _blocks(summary_tables(rows))),
        Section("tasks", "Task by task", "", _blocks(task_tables(rows))),
    ]
    if not drawn_tasks(rows):
        return tables
    label = "Test regret against oracle calls, one panel per task"
    picture = inline_svg(draw_peers(rows), "peers", label=label)
    text = (
        "Test regret against oracle calls, those of all models that were trained. Bars are "
        "standard errors of the difference to 2-stage."
    )
    return [
        Section(
            "regret-and-calls",
            "Regret and calls",
            text,
            (Block(svgs=(picture,), is_wide=True),),
        ),
        *tables,
    ]


def _blocks(tables: Sequence[Table]) -> tuple[Block, ...]:
    return tuple(Block(table.caption, tables=(table,), is_wide=True) for table in tables)
