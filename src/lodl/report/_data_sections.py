"""The sections that show data files: ablations, fidelity, slices, the paper's figures."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from lodl.report._blocks import Block, Cell, Section, Table, number, svg_of
from lodl.report._draw_cost import draw_cost
from lodl.report._draw_fidelity import draw_fidelity
from lodl.report._draw_linear import draw_linear
from lodl.report._draw_losses import draw_losses
from lodl.report._draw_slices import draw_slice
from lodl.report._folder import read_info, shown
from lodl.report._result_sections import domain_id
from lodl.report._results import Result, Results, RunValues, title_of
from lodl.report._style import method_colours

_ABLATIONS = {
    "table2a": "By sampler (the paper's table 2a)",
    "table2b": "By number of samples (the paper's table 2b)",
}


@dataclass(frozen=True)
class _PaperFigure:
    """A figure of the paper: the name of its file, its title, and who draws it."""

    name: str
    title: str
    draw: Callable[[Mapping[str, Any]], Figure]


_PAPER_FIGURES = (
    _PaperFigure("figure-losses", "Losses of a choice between two agents", draw_losses),
    _PaperFigure("figure-linear", "What models of the Linear Model learn", draw_linear),
    _PaperFigure("figure-cost", "What learning a loss costs", draw_cost),
)


def ablations_section(folder: Path) -> Section | None:
    """Returns the paper's ablations, its own figures in brackets."""
    blocks = []
    for name, title in _ABLATIONS.items():
        info = read_info(folder, name)
        if info is not None:
            with shown(folder, name):
                blocks.append(Block(title, table=_ablation_table(title, info["cells"])))
    if not blocks:
        return None
    text = "Decision quality in Web Advertising, in brackets the paper's."
    return Section("ablations", "How losses are sampled", text, tuple(blocks))


def _ablation_table(title: str, cells: Iterable[Mapping[str, Any]]) -> Table:
    by_place = {(str(cell["method"]), str(cell["column"])): cell for cell in cells}
    columns = dict.fromkeys(column for _, column in by_place)
    colours = method_colours(method for method, _ in by_place)
    rows = tuple(
        (
            Cell(method, colour=colour),
            *(_ablation_cell(by_place.get((method, column))) for column in columns),
        )
        for method, colour in colours.items()
    )
    return Table(f"Decision quality. {title}", ("trained on", *columns), rows)


def _ablation_cell(cell: Mapping[str, Any] | None) -> Cell:
    if cell is None:
        return Cell("")
    ours, paper = cell["ours"], cell["paper"]
    beside = f" ({paper['mean']:.2f} ± {paper['std']:.2f})" if paper else ""
    return Cell(f"{ours['mean']:.2f} ± {ours['std']:.2f}{beside}", float(ours["mean"]))


def fidelity_section(folder: Path, results: Results) -> Section | None:
    """Returns how faithful learned losses are: from `table3.json`, or else from the rows."""
    info = read_info(folder, "table3")
    if info is None:
        blocks = _fidelity_of_rows(results)
    else:
        with shown(folder, "table3"):
            blocks = [_fidelity_block(*item) for item in info["domains"].items()]
    if not blocks:
        return None
    return Section(
        name="fidelity",
        title="How faithful the learned losses are",
        text=(
            "Mean absolute difference between learned loss and true regret: on held-out samples "
            "around the labels, and at the predictions of the models trained on it. The second "
            "is where a loss is used; the paper finds that it tells decision quality."
        ),
        blocks=tuple(blocks),
    )


def _fidelity_of_rows(results: Results) -> list[Block]:
    blocks = []
    for domain, compared in results.compared.items():
        methods = {r.method: _errors(r) for r in compared if r.empirical_error is not None}
        if methods:
            blocks.append(Block(title_of(domain), table=_fidelity_table(domain, methods)))
    return blocks


def _errors(result: Result) -> dict[str, dict[str, float] | None]:
    spreads = {
        "gaussian": result.gaussian_error,
        "empirical": result.empirical_error,
        "quality": result.quality,
    }
    return {name: _figures(spread) for name, spread in spreads.items()}


def _figures(spread: RunValues | None) -> dict[str, float] | None:
    return None if spread is None else {"mean": spread.mean, "std": spread.std}


def _fidelity_block(name: str, domain: Mapping[str, Any]) -> Block:
    label = f"Decision quality against the errors of learned losses in {title_of(name)}"
    figure = draw_fidelity({"domains": {name: {**domain, "title": ""}}})
    svgs = (svg_of(figure, f"fidelity-{domain_id(name)}", label=label),)
    table = _fidelity_table(name, domain["methods"])
    return Block(title_of(name), svgs, table=table, is_wide=True)


def _fidelity_table(domain: str, methods: Mapping[str, Mapping[str, Any]]) -> Table:
    colours = method_colours(methods)
    rows = tuple(
        (
            Cell(method, colour=colours[method]),
            *(_error_cell(errors[name]) for name in ("gaussian", "empirical")),
            number(errors["quality"]["mean"]),
        )
        for method, errors in sorted(methods.items(), key=lambda item: -item[1]["quality"]["mean"])
    )
    columns = ("learned loss", "around labels", "at predictions", "quality")
    return Table(f"Mean absolute errors of learned losses in {title_of(domain)}", columns, rows)


def _error_cell(error: Mapping[str, float] | None) -> Cell:
    if error is None:
        return Cell("")
    return Cell(f"{error['mean']:.2g} ± {error['std']:.1g}", error["mean"])


def slices_section(folder: Path) -> Section | None:
    """Returns slices of learned losses beside the true regret, from `slices.json`."""
    info = read_info(folder, "slices")
    if info is None:
        return None
    with shown(folder, "slices"):
        slices = list(info["slices"])
        names = dict.fromkeys(name for one in slices for name in one["loss"])
        svgs = tuple(
            svg_of(
                draw_slice(one),
                f"slice-{i}",
                label=f"True regret and {', '.join(one['loss'])} of instance {one['instance']}, "
                f"{one['direction']}",
            )
            for i, one in enumerate(slices)
        )
    key = (("true regret", "currentColor"), *method_colours(names).items())
    return Section(
        name="slices",
        title="What the losses look like",
        text=(
            "The true regret of the decision and the learned losses, as the prediction leaves the "
            "label (dashed) in one direction: along a coordinate, or towards what a model predicts."
        ),
        blocks=(Block(svgs=svgs, key=key),),
    )


def paper_section(folder: Path) -> Section | None:
    """Returns the figures of the paper that the folder has data for."""
    blocks = []
    for figure in _PAPER_FIGURES:
        info = read_info(folder, figure.name)
        if info is not None:
            with shown(folder, figure.name):
                svg = svg_of(figure.draw(info), figure.name, label=figure.title)
            blocks.append(Block(figure.title, (svg,), is_wide=True))
    if not blocks:
        return None
    return Section("paper", "Figures of the paper", "", tuple(blocks))
