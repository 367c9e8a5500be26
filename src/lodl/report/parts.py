"""Parts for other pages in the same style: sections, figures, files of rows."""

from lodl._json import blaming, read_json, write_json, write_text
from lodl.report._html import Block, Headline, Section
from lodl.report._page import render
from lodl.report._style import INK, MUTED, PAPER, inline_svg, new_figure, save_figure, style
from lodl.report._text import shortened

__all__ = [
    "INK",
    "MUTED",
    "PAPER",
    "Block",
    "Headline",
    "Section",
    "blaming",
    "inline_svg",
    "new_figure",
    "read_json",
    "render",
    "save_figure",
    "shortened",
    "style",
    "write_json",
    "write_text",
]
