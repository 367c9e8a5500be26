"""The page of a run: a summary of its rows, then sections."""

from collections.abc import Callable, Sequence
from pathlib import Path

from lodl._json import write_text
from lodl.errors import DataError
from lodl.report.page import Section, render
from lodl_benchmarks.pages._results import Results
from lodl_benchmarks.pages._rows import Row
from lodl_benchmarks.pages._summary import summary_section

_QUALITY_FOOTER = (
    "Decision quality is the worth of decisions taken under predictions, scored under the true "
    "labels, and normalised: random predictions give 0, the labels themselves 1."
)


def write_page(folder: str | Path, path: str | Path | None, page_of: Callable[[Path], str]) -> Path:
    """Write the page of a folder, all of it or nothing."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder. Give the folder that a run was written to.")
    return write_text(folder / "report.html" if path is None else Path(path), page_of(folder))


def render_page(
    folder: Path,
    rows: Sequence[Row],
    results: Results,
    sections: Sequence[Section | None],
    verdict: Sequence[str] = (),
) -> str:
    """Return the HTML of a page with a summary of the results and the sections that are there."""
    return render(
        title="What the decisions are worth",
        scope=f"{_scope(rows)}, from {folder.resolve().name}",
        verdict=verdict,
        sections=[
            section for section in (summary_section(results), *sections) if section is not None
        ],
        footer=_QUALITY_FOOTER,
    )


def _scope(rows: Sequence[Row]) -> str:
    counts = {
        "method": len({row.method for row in rows}),
        "domain": len({row.domain for row in rows}),
        "run": sum(len(row.test) for row in rows),
    }
    method, domain, run = (f"{n:,} {name}{'s' * (n != 1)}" for name, n in counts.items())
    return f"{method} in {domain}, {run} in all"
