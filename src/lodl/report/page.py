"""Pages of one self-contained HTML file, and the records that they are made of."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lodl._arrays import require, shortened
from lodl._progress import duration

__all__ = ["Block", "Cell", "Headline", "Section", "Table", "duration", "render", "shortened"]

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    value: float | None = None  #: Number to sort by. By default the cell is sorted by its text.
    colour: str = ""  #: Colour of a mark before the text on the page; empty for no mark.

    @classmethod
    def of_number(cls, value: float | None, text: str = "{:z.2f}") -> "Cell":
        """Return the cell of a number, or an empty cell for None."""
        return cls("") if value is None else cls(text.format(value), value)


@dataclass(frozen=True)
class Table:
    """A table whose first column names the row. Readers of a page can sort it."""

    caption: str  #: Description for readers who cannot see the table.
    columns: tuple[str, ...]  #: Titles of the columns; empty for a list of names and values.
    rows: tuple[tuple[Cell, ...], ...]
    is_stacked: bool = False  #: Whether a phone shows each row as a list of its cells.

    def texts(self) -> list[list[str]]:
        """Return the titles of the columns, then the texts of each row."""
        return [list(self.columns), *([cell.text for cell in row] for row in self.rows)]

    def markdown(self) -> str:
        """Return the table in Markdown, without its caption."""
        header, *rows = self.texts()
        lines = [header, ["---"] * len(header), *rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def text(self) -> str:
        """Return the table as aligned text, without its caption."""
        rows = self.texts()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ([name.ljust(widths[0]), *map(str.rjust, rest, widths[1:])] for name, *rest in rows)
        return "\n".join("  ".join(line).rstrip() for line in lines)


@dataclass(frozen=True)
class Block:
    """Figures with their key and tables."""

    title: str = ""  # heading, or empty
    svgs: tuple[str, ...] = ()  # made by `inline_svg`
    key: tuple[tuple[str, str], ...] = ()  # names and colours that all figures share
    tables: tuple[Table, ...] = ()  # next to or below the figures
    is_wide: bool = False  # whether figures take the whole width, with the tables below them


@dataclass(frozen=True)
class Section:
    """A section of a page: its anchor, its heading, an explanation, and blocks."""

    name: str
    title: str
    text: str
    blocks: tuple[Block, ...] = ()
    beside: Block | None = None  # next to the text, if the page is wide enough
    is_detail: bool = False  # whether the section is at the end and folded


@dataclass(frozen=True)
class Headline:
    """One number above everything else: its name, its text, its meaning, and a figure."""

    kicker: str
    number: str
    text: str
    svg: str
    note: str = ""  # a caveat


def render(
    *,
    title: str,
    scope: str,
    sections: Sequence[Section],
    footer: str,
    headline: Headline | None = None,
    verdict: Sequence[str] = (),
) -> str:
    """Return the HTML of a page, every text escaped; figures are inserted as they are.

    `scope` is the subject in one line, and `verdict` has one conclusion a line.
    """
    jinja2 = require("jinja2", extra="report")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    css, script = ((_TEMPLATES / name).read_text("utf-8") for name in ("page.css", "page.js"))
    html: str = environment.get_template("page.html").render(
        title=title,
        scope=scope,
        sections=sections,
        footer=footer,
        headline=headline,
        verdict=verdict,
        css=css,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return html
