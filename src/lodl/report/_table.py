"""One table record: the Markdown of the committed files and the HTML of the page."""

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: What is shown.
        value: The number that the cell is sorted by; None sorts by the text.
        colour: The colour of a mark before the text on the page; empty for no mark.
    """

    text: str
    value: float | None = None
    colour: str = ""

    @classmethod
    def of_number(cls, value: float | None, text: str = "{:z.2f}") -> "Cell":
        """Return the cell of a number, empty where there is none."""
        return cls("") if value is None else cls(text.format(value), value)


@dataclass(frozen=True)
class Table:
    """A table whose first column names the row; on the page, readers can sort it.

    Attributes:
        caption: What the table shows.
        columns: The titles of the columns; empty for a list of names and values.
        rows: The cells, one for each column.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def markdown(self) -> str:
        """Return the table in Markdown, without its caption."""
        texts = [[cell.text for cell in row] for row in self.rows]
        lines = [self.columns, ["---"] * len(self.columns), *texts]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

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
