"""One self-contained page from a run's folder."""

import base64
import hashlib
import os
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from lodl.errors import DataError
from lodl.report._ablation_section import ablations_section, without_ablations
from lodl.report._blocks import Block, Cell, Section, Table
from lodl.report._data_sections import paper_section, slices_section
from lodl.report._fidelity_section import fidelity_section
from lodl.report._result_sections import others_section, quality_section, time_section
from lodl.report._results import Results, in_order, results_info
from lodl.report._rows import Row, Settings, read_rows
from lodl.report._settings import settings_info, versions_info
from lodl.report._summary import summary_info


def write_report(folder: str | Path, path: str | Path | None = None) -> Path:
    """Writes one HTML file that shows a run, and needs nothing but a browser.

    Args:
        folder: Of the run. Its `rows.jsonl` has one row a line, a JSON object as told below. Data
            files of tables and figures beside it are shown, too: a `slices.json` (what
            `lodl.evaluation.loss_slices` returns) adds slices.
        path: Of the file to write, `report.html` in the folder if None.

    Returns:
        The path of the page.

    Raises:
        DataError: A file cannot be used; the message names it, and the line of a row.

    A row is one method on one draw of the data. `domain`, `method` and `test` are demanded; null is
    as good as absent, and names that are not in this list are left out.

    - `domain`, `method`: where decisions are taken, and what the models were trained on; texts.
    - `test`, `validation`: normalised decision quality, lists with one number per model. Of a
      method's settings, those of the best validation are compared.
    - `seed`: of the draw. Of rows with the same seed and settings, the last counts.
    - `sampler`, `n_samples`, `n_initialisations`, `learning_rate`, `surrogate`, `settings` and all
      in the object `training`: settings. Rows that differ in one are kept apart.
    - `oracle_calls`: calls of the solver.
    - `seconds_sampling`, `seconds_fitting`, `seconds_training`: seconds of one core.
    - `gaussian_error`: mean absolute error of the learned loss around the labels.
    - `empirical_error`: that where the models predict, a list with one number per model.
    - `data`: a digest of the data. Rows of one seed on other data are kept apart.
    - `versions`: of packages, an object with names and values.

    The paper's figures stand beside rows of its domains that have `sampler`, `n_samples`, `data`
    and the version of lodl, as `lodl reproduce` writes them.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder. Give the folder that a run was written to.")
    target = folder / "report.html" if path is None else Path(path)
    page = _page(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.{os.getpid()}.draft")
    try:
        draft.write_text(page, encoding="utf-8")
        return draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _page(folder: Path) -> str:
    rows = in_order(read_rows(folder / "rows.jsonl"))
    results = results_info(rows)
    sections = [
        quality_section(results),
        ablations_section(folder),
        others_section(results, without_ablations(results, folder)),
        time_section(results),
        fidelity_section(folder, results),
        slices_section(folder),
        paper_section(folder),
        _settings_section(rows, results),
    ]
    script = _asset("page.js")
    environment = Environment(
        loader=PackageLoader("lodl.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        name=folder.resolve().name,
        scope=_scope(rows),
        summary=summary_info(results),
        sections=[section for section in sections if section is not None],
        css=_asset("page.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _asset(name: str) -> str:
    return files("lodl.report").joinpath("templates", name).read_text(encoding="utf-8")


def _scope(rows: list[Row]) -> str:
    n_runs = sum(len(row.test) for row in rows)
    counts = {
        "method": len({row.method for row in rows}),
        "domain": len({row.domain for row in rows}),
        "run": n_runs,
    }
    method, domain, run = (f"{n:,} {name}{'s' * (n != 1)}" for name, n in counts.items())
    return f"{method} in {domain}, {run} in all"


def _settings_section(rows: list[Row], results: Results) -> Section | None:
    domains = settings_info(rows).items()
    blocks = [_settings_block(results.title_of(name), pairs) for name, pairs in domains]
    blocks.append(_settings_block("Versions", versions_info(rows)))
    found = tuple(block for block in blocks if block is not None)
    return Section("settings", "Settings, seeds, versions", "", found) if found else None


def _settings_block(title: str, settings: Settings) -> Block | None:
    if not settings:
        return None
    rows = tuple((Cell(name), Cell(value)) for name, value in settings)
    return Block(title, tables=(Table(f"Settings: {title}", (), rows),))
