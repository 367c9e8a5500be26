"""What a page is made of."""

from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.figure import Figure

from lodl.report._style import inline_svg
from lodl.report._table import Table


@dataclass(frozen=True)
class Block:
    """Figures, what they show, and tables beside them.

    Attributes:
        title: The heading, which may be absent.
        svgs: Figures, made by `svg_of`.
        key: Names and colours that all figures share.
        tables: Tables beside or below the figures.
        is_wide: Whether the figures need the whole width, with the tables below them.
    """

    title: str = ""
    svgs: tuple[Markup, ...] = ()
    key: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()
    is_wide: bool = False


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes:
        name: Its anchor.
        title: Its heading.
        text: An explanation of what the reader sees.
        blocks: Its contents; blocks with small figures may stand side by side.
        beside: A figure that stands beside the text where the page is wide enough.
    """

    name: str
    title: str
    text: str
    blocks: tuple[Block, ...] = ()
    beside: Block | None = None


def svg_of(figure: Figure, name: str, *, label: str) -> Markup:
    """Return a figure for the page; matplotlib has escaped its texts."""
    return Markup(inline_svg(figure, name, label=label))
