"""The sections that show data files: slices, the paper's figures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from lodl.report._blocks import Block, Section, Table, svg_of
from lodl.report._draw_cost import draw_cost
from lodl.report._draw_linear import draw_linear
from lodl.report._draw_losses import draw_losses
from lodl.report._draw_slices import draw_slice
from lodl.report._figure_tables import cost_tables, linear_tables
from lodl.report._folder import read_info, shown
from lodl.report._style import method_colours


@dataclass(frozen=True)
class _PaperFigure:
    """A figure of the paper: the name of its file, its title, who draws it and tells it."""

    name: str
    title: str
    draw: Callable[[Mapping[str, Any]], Figure]
    tables: Callable[[Mapping[str, Any]], tuple[Table, ...]] | None = None


_PAPER_FIGURES = (
    _PaperFigure("figure-losses", "Losses of a choice between two agents", draw_losses),
    _PaperFigure(
        "figure-linear", "What models of the Linear Model learn", draw_linear, linear_tables
    ),
    _PaperFigure("figure-cost", "What learning a loss costs", draw_cost, cost_tables),
)


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
            "label (dashed) in one direction."
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
                tables = () if figure.tables is None else figure.tables(info)
            blocks.append(Block(figure.title, (svg,), tables=tables, is_wide=True))
    if not blocks:
        return None
    return Section("paper", "Figures of the paper", "", tuple(blocks))
