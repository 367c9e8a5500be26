"""The sections that show the results of rows: quality, other settings, time, settings."""

from collections.abc import Sequence

from lodl.report import Cell, Table
from lodl.report.page import Block, Section
from lodl.report.style import inline_svg
from lodl_benchmarks.pages._draw import (
    PART_COLOURS,
    draw_quality,
    draw_time,
    in_seconds,
    method_colours,
)
from lodl_benchmarks.pages._mean_std import mean_cell
from lodl_benchmarks.pages._results import Result, Results
from lodl_benchmarks.pages._rows import PARTS, Row, Settings
from lodl_benchmarks.pages._settings import settings_in_words, versions_of


def quality_section(results: Results) -> Section:
    """Return decision quality per domain: each model, mean and spread, published numbers."""
    text = (
        "Random predictions give 0, the true labels 1. A small dot is one run, the large dot "
        "the mean, the bar ± one standard deviation; methods whose bars meet are within the spread"
    )
    if any(result.published for domain in results.compared.values() for result in domain):
        text += f"; the grey diamond is {results.publication}"
    return Section(
        name="quality",
        title="Decision quality",
        text=f"{text}.",
        blocks=tuple(
            _quality_block(domain, results.title_of(domain), compared)
            for domain, compared in results.compared.items()
        ),
    )


def _quality_block(domain: str, title: str, results: Sequence[Result]) -> Block:
    read_out = "; ".join(f"{result.method} {result.quality}" for result in results)
    label = f"Decision quality in {title}: {read_out}"
    svgs = (inline_svg(draw_quality(results), f"quality-{domain_id(domain)}", label=label),)
    return Block(title, svgs, tables=(_quality_table(f"Decision quality in {title}", results),))


def domain_id(domain: str) -> str:
    """Return a domain's name as part of an id."""
    return domain.encode().hex()


def _quality_table(caption: str, results: Sequence[Result]) -> Table:
    colours = method_colours(result.method for result in results)
    is_published = any(result.published for result in results)
    rows = tuple(
        (
            Cell(result.method, colour=colours[result.method]),
            mean_cell(result.quality),
            *([mean_cell(result.published)] if is_published else []),
            Cell.of_number(min(result.runs)),
            Cell.of_number(len(result.runs), "{:,}"),
        )
        for result in results
    )
    columns = (
        "trained on",
        "mean ± std",
        *(["published"] if is_published else []),
        "worst",
        "runs",
    )
    return Table(caption, columns, rows)


def others_section(results: Results, others: Sequence[Result]) -> Section | None:
    """Return results under other settings than those that are compared."""
    if not others:
        return None
    domains = {other.domain: results.title_of(other.domain) for other in others}
    return Section(
        name="others",
        title="Other settings",
        text="The same methods with other samplers, numbers of samples or training settings.",
        blocks=tuple(
            Block(title, tables=(_others_table(title, domain, others),))
            for domain, title in domains.items()
        ),
    )


def _others_table(title: str, domain: str, results: Sequence[Result]) -> Table:
    members = [result for result in results if result.domain == domain]
    colours = method_colours(result.method for result in members)
    rows = tuple(
        (
            Cell(result.method, colour=colours[result.method]),
            Cell(result.setting),
            mean_cell(result.quality),
            Cell.of_number(len(result.runs), "{:,}"),
        )
        for result in members
    )
    columns = ("trained on", "with", "mean ± std", "runs")
    return Table(f"Decision quality in {title} under other settings", columns, rows)


def time_section(results: Results) -> Section | None:
    """Return where time and solver calls went."""
    blocks = [
        _time_block(domain, results.title_of(domain), compared)
        for domain, compared in results.compared.items()
    ]
    shown = tuple(block for block in blocks if block is not None)
    if not shown:
        return None
    return Section(
        name="time",
        title="Where time and solver calls went",
        text=(
            "Seconds of one core for one seed, all its models together. Sampling asks the solver, "
            "fitting learns the loss; both are done once, however many models are trained. "
            "Sampling is timed by the clock, so it is too high where the machine did other work; "
            "fitting and training by the processor."
        ),
        blocks=shown,
    )


def _time_block(domain: str, title: str, results: Sequence[Result]) -> Block | None:
    timed = [result for result in results if sum(result.seconds.values()) > 0]
    if not timed:
        return None
    timed.sort(key=lambda result: sum(result.seconds.values()))
    read_out = "; ".join(f"{r.method} {in_seconds(sum(r.seconds.values()))}" for r in timed)
    label = f"Seconds in {title}: {read_out}"
    svgs = (inline_svg(draw_time(timed), f"time-{domain_id(domain)}", label=label),)
    return Block(title, svgs, tuple(PART_COLOURS.items()), (_time_table(title, timed),))


def _time_table(title: str, results: Sequence[Result]) -> Table:
    colours = method_colours(result.method for result in results)
    rows = tuple(
        (
            Cell(result.method, colour=colours[result.method]),
            Cell.of_number(result.oracle_calls, "{:,.0f}"),
            *(Cell.of_number(result.seconds.get(part), "{:.1f}") for part in PARTS),
        )
        for result in results
    )
    return Table(f"Oracle calls and seconds in {title}", ("trained on", "calls", *PARTS), rows)


def settings_section(rows: Sequence[Row], results: Results) -> Section | None:
    """Return the settings of each domain, and the versions of the packages."""
    domains = settings_in_words(rows).items()
    blocks = [_settings_block(results.title_of(name), pairs) for name, pairs in domains]
    blocks.append(_settings_block("Versions", versions_of(rows)))
    shown = tuple(block for block in blocks if block is not None)
    return Section("settings", "Settings, seeds, versions", "", shown) if shown else None


def _settings_block(title: str, settings: Settings) -> Block | None:
    if not settings:
        return None
    rows = tuple((Cell(name), Cell(value)) for name, value in settings)
    return Block(title, tables=(Table(f"Settings: {title}", (), rows),))
