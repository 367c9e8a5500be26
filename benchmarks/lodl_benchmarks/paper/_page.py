"""The page of a run with the paper's tables and figures beside it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from lodl.report import Table
from lodl.report.page import Block, Section
from lodl.report.style import inline_svg
from lodl_benchmarks.pages import (
    FIDELITY_TEXT,
    FIDELITY_TITLE,
    Result,
    Results,
    Row,
    blaming,
    domain_id,
    fidelity_section,
    others_section,
    quality_section,
    read_json,
    read_rows,
    render_page,
    results_of,
    settings_section,
    slices_section,
    time_section,
    write_page,
)
from lodl_benchmarks.paper._cost_figure import CostFigure
from lodl_benchmarks.paper._draw_cost import draw_cost
from lodl_benchmarks.paper._draw_table3 import draw_table3
from lodl_benchmarks.paper._linear_figure import LinearFigure, draw_linear
from lodl_benchmarks.paper._losses_figure import LossesFigure, draw_losses
from lodl_benchmarks.paper._published import DOMAINS, published_quality
from lodl_benchmarks.paper._quality_table import QualityTable
from lodl_benchmarks.paper._table3 import DomainErrors, Table3

_ABLATIONS = {
    "table2a": "By sampler (the paper's table 2a)",
    "table2b": "By number of samples (the paper's table 2b)",
}
_ABLATED_DOMAIN = "web"
_VARIED = ("sampler", "n_samples")


def write_report(folder: str | Path, path: str | Path | None = None) -> Path:
    """Write one HTML file that shows a run and needs nothing but a browser.

    Rows of the paper's domains that have `sampler`, `n_samples`, `data` and the version of lodl, as
    `lodl reproduce` writes them, are shown next to the paper's numbers. Data files of the paper's
    tables and figures in the folder are shown as well.

    Args:
        folder: The folder of the run. Its `rows.jsonl` has one row per line, a JSON object with the
            values below. A `slices.json` (what `loss_slices` returns) adds slices.
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
    return write_page(folder, path, _page)


def _page(folder: Path) -> str:
    places = {domain: place for place, domain in enumerate(DOMAINS)}
    rows = sorted(
        read_rows(folder / "rows.jsonl"), key=lambda row: places.get(row.domain, len(places))
    )
    results = beside_the_paper(results_of(rows), rows)
    ablations = _ablations(folder)
    sections = [
        quality_section(results),
        _ablations_section(ablations),
        others_section(results, _not_ablated(results, ablations.values())),
        time_section(results),
        _fidelity_section(rows, results),
        slices_section(folder),
        _figures_section(folder),
        settings_section(rows, results),
    ]
    return render_page(folder, rows, results, sections, verdict(results))


def verdict(results: Results) -> list[str]:
    """Return what a reproduction amounts to: a line for all numbers, and one for each domain."""
    lines = [
        line
        for domain, title in results.titles.items()
        for line in _domain_verdict(title, results.compared[domain])
    ]
    published = [
        result
        for domain in results.titles
        for result in results.compared[domain]
        if result.published is not None
    ]
    if not published or not lines:
        return []
    n_apart = sum(
        result.quality.is_apart_from(result.published)
        for result in published
        if result.published is not None
    )
    n_agree = len(published) - n_apart
    first = f"{n_agree} of {len(published)} published numbers lie within the spread of ours."
    return [first, *lines]


def _domain_verdict(title: str, results: Sequence[Result]) -> list[str]:
    """Return how the best learned loss compares with squared error and a constant."""
    by_method = {result.method: result.quality.mean for result in results}
    learned = [result for result in results if result.is_learned]
    if not learned or "2-stage" not in by_method:
        return []
    best = max(learned, key=lambda result: result.quality.mean)
    before, after = by_method["2-stage"], best.quality.mean
    constant = by_method.get("Constant")
    line = f"{title}: {before:z.2f} on squared error, {after:z.2f} on {best.method}"
    if constant is not None and constant > max(before, after):
        line += f"; predicting a constant gives {constant:z.2f}, so no loss helps here"
    return [f"{line}."]


def beside_the_paper(results: Results, rows: Sequence[Row]) -> Results:
    """Return the results with the titles and numbers of the paper in the domains it reproduces.

    The number of table 1 stands beside results that were sampled as there: with the main sampler,
    and with the most samples of the run.
    """
    titles = {name: title for name, title in DOMAINS.items() if name in _reproduced(rows)}
    compared = {
        domain: _with_published(members, _most_samples(results, domain))
        if domain in titles
        else members
        for domain, members in results.compared.items()
    }
    publication = "the paper's number, from 5,000 samples"
    return replace(results, compared=compared, titles=titles, publication=publication)


def _reproduced(rows: Sequence[Row]) -> set[str]:
    """Return the domains all of whose rows were written by the paper's experiments."""
    return {row.domain for row in rows} - {row.domain for row in rows if not _is_reproduction(row)}


def _is_reproduction(row: Row) -> bool:
    """Return whether the paper's experiments wrote the row; the domain's name alone is no proof."""
    has_samples = bool(row.setting("sampler") and row.setting("n_samples"))
    return row.domain in DOMAINS and has_samples and bool(row.data) and "lodl" in dict(row.versions)


def _most_samples(results: Results, domain: str) -> int:
    others = [result for result in results.others if result.domain == domain]
    return max(result.n_samples for result in (*results.compared[domain], *others))


def _with_published(results: Iterable[Result], n_samples: int) -> tuple[Result, ...]:
    return tuple(
        replace(result, published=published_quality(result.method, result.domain))
        if result.is_main_sampler and result.n_samples == n_samples
        else result
        for result in results
    )


def _ablations(folder: Path) -> dict[str, QualityTable]:
    tables = {name: read_json(folder / f"{name}.json", QualityTable) for name in _ABLATIONS}
    return {name: table for name, table in tables.items() if table is not None}


def _ablations_section(ablations: dict[str, QualityTable]) -> Section | None:
    if not ablations:
        return None
    blocks = tuple(
        Block(_ABLATIONS[name], tables=(table.table(f"Decision quality. {_ABLATIONS[name]}"),))
        for name, table in ablations.items()
    )
    text = (
        "Decision quality in Web Advertising; in brackets the paper's, with a star where the two "
        "intervals do not meet."
    )
    return Section("ablations", "How losses are sampled", text, blocks)


def _not_ablated(results: Results, ablations: Iterable[QualityTable]) -> list[Result]:
    """Return the other results, without those that the tables of ablations show.

    They show results that differ from those compared in nothing but how losses were sampled.
    """
    shown = {
        (cell.method, cell.sampler, cell.n_samples) for table in ablations for cell in table.cells
    }
    usual = {r.method: _unvaried(r) for r in results.compared.get(_ABLATED_DOMAIN, ())}
    return [
        r
        for r in results.others
        if r.domain != _ABLATED_DOMAIN
        or _unvaried(r) != usual[r.method]
        or (r.method, dict(r.settings).get("sampler"), r.n_samples) not in shown
    ]


def _unvaried(result: Result) -> dict[str, str]:
    return {name: value for name, value in result.settings if name not in _VARIED}


def _fidelity_section(rows: Sequence[Row], results: Results) -> Section | None:
    """Return table 3 for reproduced domains, and errors alone for others."""
    compared = {(r.domain, r.method, r.settings) for rs in results.compared.values() for r in rs}
    table = Table3.of(
        [
            row
            for row in rows
            if row.domain in results.titles and (row.domain, row.method, row.settings) in compared
        ]
    )
    own = {name: group for name, group in results.compared.items() if name not in table.domains}
    others = fidelity_section(replace(results, compared=own))
    if not table.domains:
        return others
    blocks = [_errors_block(name, domain) for name, domain in table.domains.items()]
    if table.trends().rows:
        blocks.append(Block("Decision quality and error", tables=(table.trends(),)))
    text = (
        f"{FIDELITY_TEXT} The paper finds that the error there predicts decision quality. In "
        "brackets the paper's numbers, with a star where the two intervals do not meet."
    )
    blocks += [] if others is None else others.blocks
    return Section("fidelity", FIDELITY_TITLE, text, tuple(blocks))


def _errors_block(name: str, domain: DomainErrors) -> Block:
    label = f"Decision quality against the errors of learned losses in {domain.title}"
    figure = draw_table3([replace(domain, title="")])
    svgs = (inline_svg(figure, f"fidelity-{domain_id(name)}", label=label),)
    title = f"{domain.title}, errors in {domain.unit}"
    return Block(title, svgs, tables=(domain.table(),), is_wide=True)


@dataclass(frozen=True)
class _PaperFigure:
    """A figure of the paper: its file, its record, its title, its drawing and its tables."""

    name: str
    kind: type[Any]
    title: str
    draw: Callable[[Any], Figure]
    tables: Callable[[Any], tuple[Table, ...]]


_FIGURES = (
    _PaperFigure(
        "figure-losses",
        LossesFigure,
        "Losses of a choice between two agents",
        draw_losses,
        lambda _: (),
    ),
    _PaperFigure(
        "figure-linear",
        LinearFigure,
        "What models of the Linear Model learn",
        draw_linear,
        lambda data: (data.table(),),
    ),
    _PaperFigure(
        "figure-cost",
        CostFigure,
        "What learning a loss costs",
        draw_cost,
        lambda data: tuple(domain.table() for domain in data.domains),
    ),
)


def _figures_section(folder: Path) -> Section | None:
    """Return the figures of the paper that the folder has data for."""
    blocks: list[Block] = []
    for figure in _FIGURES:
        path = folder / f"{figure.name}.json"
        data: Any = read_json(path, figure.kind)
        if data is not None:
            with blaming(path):
                svg = inline_svg(figure.draw(data), figure.name, label=figure.title)
                tables = figure.tables(data)
            blocks.append(Block(figure.title, (svg,), tables=tables, is_wide=True))
    return Section("paper", "Figures of the paper", "", tuple(blocks)) if blocks else None
