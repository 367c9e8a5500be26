"""HTML of results for notebooks."""

from collections.abc import Iterable, Sequence
from html import escape


def notebook_html(
    title: str, notes: Iterable[str], rows: Iterable[Sequence[str]] = (), header: Sequence[str] = ()
) -> str:
    """Return a title, sentences, and a table whose first column names the rows, all escaped."""
    parts = [f"<p><b>{escape(title)}</b></p>" if title else ""]
    parts += (f"<p>{escape(note)}</p>" for note in notes)
    lines = [_line("th", header)] if header else []
    lines += (_line("td", row) for row in rows)
    if lines:
        parts.append(f"<table>{''.join(lines)}</table>")
    return f"<div>{''.join(parts)}</div>"


def _line(tag: str, texts: Sequence[str]) -> str:
    first, *others = (escape(text) for text in texts)
    cells = "".join(f"<{tag}>{text}</{tag}>" for text in others)
    return f'<tr><th scope="row" style="text-align: left">{first}</th>{cells}</tr>'
