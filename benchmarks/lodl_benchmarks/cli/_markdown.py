"""Markdown as a terminal shows it: headings, paragraphs, and tables that are never cut off."""

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from lodl.report import Table

_GAP = "  "
_NARROWEST, _WIDEST = 40, 120  # columns of a terminal that are used
_NAME_SHARE = 0.4  # of the width, for the first column of a table
_LEAST_TEXT = 34  # columns for a text that is broken
_NUMBER = re.compile(r"[-+]?[\d,.]+%?( ± [\d.]+)?|")


def show_tables(tables: "Sequence[Table]", out: Path, name: str) -> None:
    """Print tables, and write them to a file beside their rows."""
    from lodl._json import write_text

    text = "\n\n".join(f"## {table.caption}\n\n{table.markdown()}" for table in tables)
    path = write_text(out / name, f"{text}\n")
    print_markdown(text)
    typer.echo(f"Rows: {out / 'rows.jsonl'}, tables: {path}")


def print_markdown(text: str) -> None:
    """Print headings, paragraphs and tables, as wide as the terminal.

    A table that is too wide is printed in parts, each with its first column: numbers are neither
    cut nor broken.
    """
    terminal = shutil.get_terminal_size().columns
    width = min(max(terminal, _NARROWEST), _WIDEST)
    for block in re.split(r"\n\s*\n", text.strip()):
        typer.echo("\n".join(_lines(block.strip().splitlines(), width)) + "\n")


def _lines(block: Sequence[str], width: int) -> Iterator[str]:
    if block[0].startswith("|"):
        yield from _table([_cells(line) for line in (block[0], *block[2:])], width)
    elif block[0].startswith("#"):
        title = " ".join(block).lstrip("# ")
        yield from (typer.style(line, bold=True) for line in wrap(title, width))
    else:
        yield from wrap(" ".join(block), width)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip()[1:-1].split("|")]


def _table(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines of a table, whose first row is its head, in as many parts as needed."""
    names, *columns = zip(*rows, strict=True)
    name_width = min(_width(names), int(_NAME_SHARE * width))
    room = width - name_width - len(_GAP)
    parts: list[list[Sequence[str]]] = [[]]
    for column in columns:
        used = sum(_least_width(earlier) + len(_GAP) for earlier in parts[-1])
        if parts[-1] and used + _least_width(column) > room:
            parts.append([])
        parts[-1].append(column)
    for number, part in enumerate(parts):
        if number:
            yield ""
        yield from _part([names, *part], [name_width, *_widths(part, room)])


def _widths(columns: Sequence[Sequence[str]], room: int) -> Iterator[int]:
    """Yield the width of each column; those of texts share what the others leave."""
    gaps = len(_GAP) * (len(columns) - 1)
    spare = max(room - gaps - sum(map(_least_width, columns)), 0)
    for column in columns:
        least = min(_least_width(column), room)
        width = min(_width(column), least + spare)
        spare -= width - least
        yield width


def _part(columns: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    to_right = [all(_NUMBER.fullmatch(cell) for cell in column[1:]) for column in columns]
    to_right[0] = False
    for number, row in enumerate(zip(*columns, strict=True)):
        wrapped = [wrap(cell, size) or [""] for cell, size in zip(row, widths, strict=True)]
        for i in range(max(map(len, wrapped))):
            texts = (lines[i] if i < len(lines) else "" for lines in wrapped)
            padded = (
                text.rjust(size) if right else text.ljust(size)
                for text, size, right in zip(texts, widths, to_right, strict=True)
            )
            yield _GAP.join(padded).rstrip()
        if not number:
            yield "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))


def _width(column: Sequence[str]) -> int:
    """Return how wide a column is if only its title is broken, between words."""
    title, *cells = column
    return max(len(text) for text in (*title.split(), *cells, ""))


def _least_width(column: Sequence[str]) -> int:
    """Return how wide a column must be: long texts may be broken, between words."""
    return min(_width(column), _LEAST_TEXT)
