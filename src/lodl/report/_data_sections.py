"""The sections that show data files: fidelity, slices, the paper's figures."""

import math
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

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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
    columns = {"gaussian": "around labels", "empirical": "at predictions"}
    powers = {name: _power_of_ten(errors[name] for errors in methods.values()) for name in columns}
    rows = tuple(
        (
            Cell(method, colour=colours[method]),
            *(_error_cell(errors[name], power) for name, power in powers.items()),
            number(errors["quality"]["mean"]),
        )
        for method, errors in sorted(methods.items(), key=lambda item: -item[1]["quality"]["mean"])
    )
    titles = (f"{title}{_unit(powers[name])}" for name, title in columns.items())
    caption = f"Mean absolute errors of learned losses in {title_of(domain)}"
    return Table(caption, ("learned loss", *titles, "quality"), rows)


def _power_of_ten(errors: Iterable[Mapping[str, float] | None]) -> int:
    """Returns what a column is divided by so that two decimals tell its largest mean."""
    largest = max((abs(error["mean"]) for error in errors if error is not None), default=0.0)
    power = math.floor(math.log10(largest)) if largest > 0 else 0
    return 0 if -1 <= power <= 2 else power


def _unit(power: int) -> str:
    return f", x 10{str(power).translate(_SUPERSCRIPTS)}" if power else ""


def _error_cell(error: Mapping[str, float] | None, power: int) -> Cell:
    if error is None:
        return Cell("")
    mean, std = (error[name] * 10.0**-power for name in ("mean", "std"))
    return Cell(f"{mean:z.2f} ± {std:.2f}", error["mean"])


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
        blocks=(Block(str(info.get("title", "")), svgs, key=key),),
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
