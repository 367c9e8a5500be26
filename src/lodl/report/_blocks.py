"""What a page is made of: records that the template turns into HTML, escaping every text."""

from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.figure import Figure

from lodl.paper import MeanStd
from lodl.report._style import inline_svg


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: For people.
        value: What a number sorts by; None sorts by the text.
        colour: Of a mark before the text, as figures have it.
    """

    text: str
    value: float | None = None
    colour: str = ""


@dataclass(frozen=True)
class Table:
    """A table that a reader can sort; the first column names the row.

    Attributes:
        caption: What it shows.
        columns: Their titles.
        rows: As many cells as columns each.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def has_numbers(self, column: int) -> bool:
        """Tells whether a column is one of numbers."""
        return any(row[column].value is not None for row in self.rows)


@dataclass(frozen=True)
class Block:
    """Figures, what they show, and tables beside them.

    Attributes:
        title: May be absent.
        svgs: Made by `svg_of`.
        key: Names and colours that all figures share.
        tables: Beside or below the figures.
        is_wide: Whether the figures need the whole width, the tables below them.
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
        text: What the reader looks at.
        blocks: What there is to see; those with small figures may stand side by side.
    """

    name: str
    title: str
    text: str
    blocks: tuple[Block, ...]


def svg_of(figure: Figure, name: str, *, label: str) -> Markup:
    """Returns a figure for the page; matplotlib has escaped its texts."""
    return Markup(inline_svg(figure, name, label=label))


def number(value: float | None, text: str = "{:z.2f}") -> Cell:
    """Returns the cell of a number, empty where there is none."""
    return Cell("") if value is None else Cell(text.format(value), value)


def beside(ours: MeanStd, paper: MeanStd | None) -> Cell:
    """Returns the cell of our figure, with the paper's in brackets where there is one."""
    return Cell(str(ours) if paper is None else f"{ours} ({paper})", ours.mean)
