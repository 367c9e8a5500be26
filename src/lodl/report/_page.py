"""One self-contained page from a run's folder."""

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from lodl._json_file import write_text
from lodl.errors import DataError
from lodl.report._blocks import Section
from lodl.report._fidelity_section import fidelity_section
from lodl.report._result_sections import (
    others_section,
    quality_section,
    settings_section,
    time_section,
)
from lodl.report._results import Results, results_of
from lodl.report._rows import Row, read_rows
from lodl.report._slices import slices_section
from lodl.report._summary import Summary, summaries_of

_QUALITY_FOOTER = (
    "Decision quality is the worth of decisions taken under predictions, scored under the true "
    "labels, and normalised: random predictions give 0, the labels themselves 1."
)


def write_report(folder: str | Path, path: str | Path | None = None) -> Path:
    """Write one HTML file that shows a run and needs nothing but a browser.

    Args:
        folder: The folder of the run. Its `rows.jsonl` has one row per line, a JSON object with the
            values below. A `slices.json` (what `lodl.evaluation.loss_slices` returns) adds slices.
        path: The file to write, `report.html` in the folder if None.

    Returns:
        The path of the page.

    Raises:
        DataError: A file cannot be used; the message names it, and the line of a row.

    A row is one method on one draw of the data. `domain`, `method` and `test` are required; null
    means absent, and names that are not in this list are ignored.

    - `domain`, `method`: where decisions are taken, and what the models were trained on; texts.
    - `test`, `validation`: normalised decision quality, lists with one number per model. Of a
      method's settings, those with the best validation quality are compared.
    - `seed`: the seed of the draw. Of rows with the same seed and settings, the last counts.
    - `sampler`, `n_samples`, `n_initialisations`, `learning_rate`, `surrogate`, `settings` and
      everything in the object `training`: settings. Rows that differ in one are kept apart.
    - `oracle_calls`: calls of the solver.
    - `seconds_sampling`, `seconds_fitting`, `seconds_training`: seconds of one core.
    - `gaussian_error`: mean absolute error of the learned loss around the labels.
    - `empirical_error`: the same error where the models predict, a list with one number per model.
    - `data`: a digest of the data. Rows of one seed on other data are kept apart.
    - `versions`: versions of packages, an object with names and values.
    """
    return write_page(folder, path, _generic_page)


def write_page(folder: str | Path, path: str | Path | None, page_of: Callable[[Path], str]) -> Path:
    """Write the page of a folder, all of it or nothing; see `write_report`."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder. Give the folder that a run was written to.")
    return write_text(folder / "report.html" if path is None else Path(path), page_of(folder))


def _generic_page(folder: Path) -> str:
    rows = read_rows(folder / "rows.jsonl")
    results = results_of(rows)
    sections = [
        quality_section(results),
        others_section(results, results.others),
        time_section(results),
        fidelity_section(results),
        slices_section(folder),
        settings_section(rows, results),
    ]
    return render_page(folder, rows, results, sections)


@dataclass(frozen=True)
class Headline:
    """The first thing on a page: one number, what it means, and one figure.

    Attributes:
        kicker: What the number is.
        number: The number, as text.
        text: What it means, in a few sentences.
        svg: A figure, made by `svg_of`.
    """

    kicker: str
    number: str
    text: str
    svg: Markup


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
        summary=summaries_of(results),
        verdict=verdict,
        sections=[section for section in sections if section is not None],
        footer=_QUALITY_FOOTER,
    )


def render(
    *,
    title: str,
    scope: str,
    sections: Sequence[Section],
    footer: str,
    headline: Headline | None = None,
    summary: Sequence[Summary] = (),
    verdict: Sequence[str] = (),
) -> str:
    """Return the HTML of a page.

    Args:
        title: The heading.
        scope: What the page is about, in a line.
        sections: The contents.
        footer: How to read the numbers.
        headline: One number above everything else.
        summary: What came out, by domain.
        verdict: What it all amounts to, one line each.
    """
    script = _asset("page.js")
    environment = Environment(
        loader=PackageLoader("lodl.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        title=title,
        scope=scope,
        headline=headline,
        summary=summary,
        verdict=verdict,
        sections=sections,
        footer=footer,
        css=_asset("page.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _asset(name: str) -> str:
    return files("lodl.report").joinpath("templates", name).read_text(encoding="utf-8")


def _scope(rows: Sequence[Row]) -> str:
    counts = {
        "method": len({row.method for row in rows}),
        "domain": len({row.domain for row in rows}),
        "run": sum(len(row.test) for row in rows),
    }
    method, domain, run = (f"{n:,} {name}{'s' * (n != 1)}" for name, n in counts.items())
    return f"{method} in {domain}, {run} in all"
