"""The sections that show the results of rows: quality, other settings, time."""

from collections.abc import Iterable, Sequence

from lodl.report._blocks import Block, Cell, Section, Table, number, svg_of
from lodl.report._draw_quality import draw_quality
from lodl.report._draw_time import PART_COLOURS, draw_time, in_seconds
from lodl.report._results import Result, Results
from lodl.report._style import method_colours
from lodl.rows import PARTS


def quality_section(results: Results) -> Section:
    """Returns decision quality per domain: each model, mean and spread; the paper's beside."""
    has_paper = any(result.paper for domain in results.compared.values() for result in domain)
    text = (
        "Random predictions give 0, the true labels 1. A small dot is one run, the large dot "
        "the mean, the bar ± one standard deviation; methods whose bars meet are within the spread"
    )
    of_paper = "; the grey diamond is the paper's figure, from 5,000 samples" if has_paper else ""
    return Section(
        name="quality",
        title="Decision quality",
        text=f"{text}{of_paper}.",
        blocks=tuple(
            _quality_block(domain, results.title_of(domain), compared)
            for domain, compared in results.compared.items()
        ),
    )


def _quality_block(domain: str, title: str, results: Sequence[Result]) -> Block:
    label = f"Decision quality in {title}: " + _read_out(results)
    svgs = (svg_of(draw_quality(results), f"quality-{domain_id(domain)}", label=label),)
    return Block(title, svgs, tables=(_quality_table(f"Decision quality in {title}", results),))


def domain_id(domain: str) -> str:
    """Returns a domain's name as part of an id."""
    return domain.encode().hex()


def _read_out(results: Iterable[Result]) -> str:
    return "; ".join(f"{result.method} {result.quality}" for result in results)


def _quality_table(caption: str, results: Sequence[Result]) -> Table:
    colours = method_colours(result.method for result in results)
    has_paper = any(result.paper for result in results)
    rows = tuple(
        (
            Cell(result.method, colour=colours[result.method]),
            Cell(str(result.quality), result.quality.mean),
            *([_published(result)] if has_paper else []),
            number(min(result.quality.values)),
            number(len(result.quality.values), "{:,}"),
        )
        for result in results
    )
    columns = ("trained on", "mean ± std", *(["paper"] if has_paper else []), "worst", "runs")
    return Table(caption, columns, rows)


def _published(result: Result) -> Cell:
    if result.paper is None:
        return Cell("")
    return Cell(str(result.paper), result.paper.mean)


def others_section(results: Results, others: Sequence[Result]) -> Section | None:
    """Returns those of the results under other settings that are to be shown."""
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
            Cell(str(result.quality), result.quality.mean),
            number(len(result.quality.values), "{:,}"),
        )
        for result in members
    )
    columns = ("trained on", "with", "mean ± std", "runs")
    return Table(f"Decision quality in {title} under other settings", columns, rows)


def time_section(results: Results) -> Section | None:
    """Returns where time and oracle calls went."""
    blocks = [
        _time_block(domain, results.title_of(domain), compared)
        for domain, compared in results.compared.items()
    ]
    found = tuple(block for block in blocks if block is not None)
    if not found:
        return None
    return Section(
        name="time",
        title="Where time and oracle calls went",
        text=(
            "Seconds of one core for one seed, all its models together. Sampling asks the solver, "
            "fitting learns the loss; both are done once, however many models are trained. "
            "Sampling is timed by the clock, so it is too high where the machine did other work; "
            "fitting and training by the processor."
        ),
        blocks=found,
    )


def _time_block(domain: str, title: str, results: Sequence[Result]) -> Block | None:
    timed = [result for result in results if sum(result.seconds.values()) > 0]
    if not timed:
        return None
    timed.sort(key=lambda result: sum(result.seconds.values()))
    read_out = "; ".join(f"{r.method} {in_seconds(sum(r.seconds.values()))}" for r in timed)
    label = f"Seconds in {title}: {read_out}"
    svgs = (svg_of(draw_time(timed), f"time-{domain_id(domain)}", label=label),)
    return Block(title, svgs, tuple(PART_COLOURS.items()), (_time_table(title, timed),))


def _time_table(title: str, results: Sequence[Result]) -> Table:
    colours = method_colours(result.method for result in results)
    rows = tuple(
        (
            Cell(result.method, colour=colours[result.method]),
            number(result.oracle_calls, "{:,.0f}"),
            *(number(result.seconds.get(part), "{:.1f}") for part in PARTS),
        )
        for result in results
    )
    return Table(f"Oracle calls and seconds in {title}", ("trained on", "calls", *PARTS), rows)
