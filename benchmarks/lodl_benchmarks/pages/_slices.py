"""Slices: learned losses beside the true regret, along lines through labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from lodl.report.page import Block, Section, shortened
from lodl.report.style import INK, MUTED, inline_svg, new_figure, style
from lodl_benchmarks.pages._draw import method_colours
from lodl_benchmarks.pages._json import blaming, read_json

_TEXT = (
    "True regret and learned loss as the prediction moves away from the label (dashed line) in one "
    "direction. True regret moves in steps, because the decision changes all at once. A convex "
    "loss cannot follow the steps: it lies above them where they level off."
)
_ROOM = 1.6  # the height of the axes in units of the largest regret: beyond, losses are cut off


@dataclass(frozen=True)
class Slice:
    """One line through the label of an instance."""

    instance: int | str  # the instance
    direction: str  # name of the line
    offsets: tuple[float, ...]  # points on the line; 0 is the label
    regret: tuple[float, ...]  # the true regret at the points
    loss: Mapping[str, tuple[float, ...]]  # the learned losses at the points, by name


@dataclass(frozen=True)
class Slices:
    """The contents of `slices.json`: what `lodl_benchmarks.slices.loss_slices` returns."""

    slices: tuple[Slice, ...]
    title: str = ""


def slices_section(folder: Path) -> Section | None:
    """Return slices of learned losses beside the true regret, from `slices.json`."""
    path = folder / "slices.json"
    data = read_json(path, Slices)
    if data is None:
        return None
    with blaming(path):
        return section_of_slices(data.slices, data.title)


def section_of_slices(slices: Sequence[Slice], title: str = "", unit: str = "") -> Section:
    """Return the section that shows slices."""
    names = dict.fromkeys(name for line in slices for name in line.loss)
    svgs = tuple(
        inline_svg(
            draw_slice(line, unit),
            f"slice-{i}",
            label=f"True regret and {', '.join(line.loss)} of {_name(line)}, {line.direction}",
        )
        for i, line in enumerate(slices)
    )
    return Section(
        name="slices",
        title="What the losses look like",
        text=_TEXT,
        blocks=(
            Block(
                title,
                svgs,
                key=(("true regret", "currentColor"), *method_colours(names).items()),
            ),
        ),
    )


@style()
def draw_slice(line: Slice, unit: str = "") -> Figure:
    """Draw the true regret and every learned loss along one line."""
    figure = new_figure(3.5, 2.5)
    axes = figure.subplots()
    axes.axvline(0, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.step(line.offsets, line.regret, where="mid", color=INK, linewidth=2.6)
    for name, colour in method_colours(line.loss).items():
        axes.plot(line.offsets, line.loss[name], color=colour, linewidth=1.6)
    highest = max(line.regret)
    if highest > 0:
        axes.set_ylim(-0.04 * _ROOM * highest, _ROOM * highest)
    axes.set_ylabel(f"regret, {unit}" if unit else "regret")
    axes.set_title(shortened(_name(line)), fontsize=10)
    axes.set_xlabel(shortened(_along(line.direction), 40))
    return figure


def _name(line: Slice) -> str:
    return line.instance if isinstance(line.instance, str) else f"instance {line.instance}"


def _along(direction: str) -> str:
    if direction.startswith("towards"):
        return f"{direction} (at 1)"
    return f"error in {direction}"
