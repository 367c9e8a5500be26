"""Records that a page is made of: cells, tables, blocks of figures, sections, the headline."""

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: Text of the cell.
        value: Number to sort by. By default the cell is sorted by its text.
        colour: Colour of a mark before the text on the page; empty for no mark.
    """

    text: str
    value: float | None = None
    colour: str = ""

    @classmethod
    def of_number(cls, value: float | None, text: str = "{:z.2f}") -> "Cell":
        """Return the cell of a number, or an empty cell for None."""
        return cls("") if value is None else cls(text.format(value), value)


@dataclass(frozen=True)
class Table:
    """A table whose first column names the row. Readers of a page can sort it.

    Attributes:
        caption: Description for readers who cannot see the table.
        columns: Titles of the columns; empty for a list of names and values.
        rows: Cells of each row, one per column.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def markdown(self) -> str:
        """Return the table in Markdown, without its caption."""
        texts = [[cell.text for cell in row] for row in self.rows]
        lines = [self.columns, ["---"] * len(self.columns), *texts]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def text(self) -> str:
        """Return the table as aligned text, without its caption."""
        rows = [self.columns, *([cell.text for cell in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for name, *others in rows:
            cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
            lines.append("  ".join([name.ljust(widths[0]), *cells]).rstrip())
        return "\n".join(lines)

    def html(self) -> str:
        """Return the table in HTML, every text escaped."""
        caption = escape(self.caption)
        kind = "" if self.columns else ' class="settings"'
        return "\n".join(
            [
                f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0">',
                f"<table{kind}>",
                f"<caption>{caption}</caption>",
                *self._head(),
                "<tbody>",
                *(f"<tr>\n{_html_of_row(row)}\n</tr>" for row in self.rows),
                "</tbody>",
                "</table>",
                "</div>",
            ]
        )

    def _head(self) -> list[str]:
        if not self.columns:
            return []
        titles = [
            f'<th scope="col"{_number_class(self._has_numbers(i))}>'
            f'<button type="button">{escape(title)}</button></th>'
            for i, title in enumerate(self.columns)
        ]
        return ["<thead>", "<tr>", *titles, "</tr>", "</thead>"]

    def _has_numbers(self, column: int) -> bool:
        return any(row[column].value is not None for row in self.rows)


def _html_of_row(cells: tuple[Cell, ...]) -> str:
    name, *others = cells
    colour = escape(name.colour)
    mark = f'<i class="mark" style="background: {colour}"></i>' if colour else ""
    lines = [f'<th scope="row">{mark}{escape(name.text)}</th>']
    for cell in others:
        value = "" if cell.value is None else f' data-value="{cell.value}"'
        number = _number_class(cell.value is not None)
        lines.append(f"<td{number}{value}>{escape(cell.text)}</td>")
    return "\n".join(lines)


def _number_class(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


@dataclass(frozen=True)
class Block:
    """Figures with their key and tables.

    Attributes:
        title: Heading; empty for none.
        svgs: Figures, made by `inline_svg`.
        key: Names and colours that all figures share.
        tables: Tables next to or below the figures.
        is_wide: Whether the figures take the whole width, with the tables below them.
    """

    title: str = ""
    svgs: tuple[str, ...] = ()
    key: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()
    is_wide: bool = False


@dataclass(frozen=True)
class Section:
    """A section of a page.

    Attributes:
        name: Anchor.
        title: Heading.
        text: Explanation of what the reader sees.
        blocks: Contents; blocks with small figures may be side by side.
        beside: A block next to the text, if the page is wide enough.
    """

    name: str
    title: str
    text: str
    blocks: tuple[Block, ...] = ()
    beside: Block | None = None


@dataclass(frozen=True)
class Headline:
    """The first thing on a page: one number, its meaning, and one figure.

    Attributes:
        kicker: Name of the number.
        number: The number as text.
        text: Its meaning in a few sentences.
        svg: A figure, made by `inline_svg`.
    """

    kicker: str
    number: str
    text: str
    svg: str
