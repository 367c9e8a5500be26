"""The page: what was to be shown, the picture and the tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from lodl.report import Table
from lodl.report.page import Block, Section, render
from lodl.report.style import inline_svg
from lodl_benchmarks.pages import read_json_rows, save_figure, write_page
from lodl_benchmarks.peers._bill import bills
from lodl_benchmarks.peers._draw import draw_bill
from lodl_benchmarks.peers._draw_ranks import draw_ranks
from lodl_benchmarks.peers._standings import verdict
from lodl_benchmarks.peers._summary import scores
from lodl_benchmarks.peers._tables import summary_tables, task_tables

_FOOTER = (
    "Regret is what decisions cost more than the best ones, as a share of what those cost. All "
    "methods share one solver, one training loop and one treatment; lodl has its defaults. ± is "
    "the standard error of a difference, paired by data seed and test instance."
)
_RANKS = (
    "Share of tasks on which a method is within a factor of the best one, and mean ranks with "
    "intervals from tasks drawn again."
)
_BILL = (
    "Regret over that of 2-stage against all solver calls, looks included, and against CPU "
    "seconds: those measured outside the solver, and the calls at three prices. Numbers at the "
    "points are budgets of calls an instance and epochs. Geometric means over tasks."
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
    return [
        *(
            Section(name, title, text, (Block(svgs=(_svg(figure, name, title),), is_wide=True),))
            for name, title, text, figure in _pictures(rows)
        ),
        *tables,
    ]


def write_pictures(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Write the pictures as SVG and PNG, if 2-stage and ours have linear tasks; return the SVGs."""
    return [save_figure(figure, folder / name)[0] for name, _, _, figure in _pictures(rows)]


def _pictures(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str, Figure]]:
    """Return name, title, text and figure of each picture."""
    if not bills(scores(rows)):
        return []
    return [
        ("ranks", "Profile and ranks", _RANKS, draw_ranks(rows)),
        ("bill", "The bill", _BILL, draw_bill(rows)),
    ]


def _svg(figure: Figure, name: str, title: str) -> str:
    return inline_svg(figure, name, label=title)


def _blocks(tables: Sequence[Table]) -> tuple[Block, ...]:
    return tuple(Block(table.caption, tables=(table,), is_wide=True) for table in tables)
