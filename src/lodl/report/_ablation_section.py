"""The section that shows the paper's table 2: other samplers, fewer samples."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lodl.paper import SAMPLERS, TABLE1, MeanStd
from lodl.report._blocks import Block, Cell, Section, Table, beside
from lodl.report._folder import read_info, shown
from lodl.report._results import Result, Results
from lodl.report._style import method_colours

_TITLES = {
    "table2a": "By sampler (the paper's table 2a)",
    "table2b": "By number of samples (the paper's table 2b)",
}
_DOMAIN = "web"
_VARIED = ("sampler", "n_samples")


def ablations_section(folder: Path) -> Section | None:
    """Returns the paper's ablations, its own figures in brackets."""
    blocks = []
    for name, cells in _tables(folder):
        with shown(folder, name):
            blocks.append(Block(_TITLES[name], tables=(_table(_TITLES[name], cells),)))
    if not blocks:
        return None
    text = "Decision quality in Web Advertising, in brackets the paper's."
    return Section("ablations", "How losses are sampled", text, tuple(blocks))


def without_ablations(results: Results, folder: Path) -> tuple[Result, ...]:
    """Returns those of the other results that this section does not show.

    It shows results that differ from what is compared in nothing but how losses were sampled.
    """
    seen = set()
    for name, cells in _tables(folder):
        with shown(folder, name):
            seen |= {(c["method"], *(str(c.get(key)) for key in _VARIED)) for c in cells}
    usual = {r.method: _unvaried(r) for r in results.compared.get(_DOMAIN, ())}
    return tuple(
        r
        for r in results.others
        if r.domain != _DOMAIN or _unvaried(r) != usual[r.method] or _sampled(r) not in seen
    )


def _unvaried(result: Result) -> dict[str, str]:
    return {name: value for name, value in result.settings if name not in _VARIED}


def _sampled(result: Result) -> tuple[str, ...]:
    settings = dict(result.settings)
    return result.method, *(str(settings.get(name)) for name in _VARIED)


def _tables(folder: Path) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    for name in _TITLES:
        info = read_info(folder, name)
        if info is not None:
            with shown(folder, name):
                cells = list(info["cells"])
            yield name, cells


def _table(title: str, cells: Iterable[Mapping[str, Any]]) -> Table:
    by_place = {(str(cell["method"]), _column(cell["column"])): cell for cell in cells}
    columns = sorted({column for _, column in by_place})
    colours = method_colours(sorted({method for method, _ in by_place}, key=_place_of_method))
    rows = tuple(
        (
            Cell(method, colour=colour),
            *(_cell(by_place.get((method, column))) for column in columns),
        )
        for method, colour in colours.items()
    )
    return Table(f"Decision quality. {title}", ("trained on", *(name for _, name in columns)), rows)


def _column(value: Any) -> tuple[float, str]:
    """Returns the place and the title of a column: a sampler, or a number of samples."""
    if isinstance(value, int | float):
        return value, f"{value:,} samples"
    places = {name: place for place, name in enumerate(SAMPLERS)}
    return places.get(str(value), len(places)), SAMPLERS.get(str(value), str(value))


def _place_of_method(method: str) -> tuple[int, str]:
    places = {name: place for place, name in enumerate(TABLE1)}
    return places.get(method, len(places)), method


def _cell(cell: Mapping[str, Any] | None) -> Cell:
    if cell is None:
        return Cell("")
    paper = cell["paper"]
    return beside(MeanStd(**cell["ours"]), None if paper is None else MeanStd(**paper))
