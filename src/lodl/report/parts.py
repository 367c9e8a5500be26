"""Parts for other pages in the same style: sections and figures."""

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
    "inline_svg",
    "new_figure",
    "render",
    "save_figure",
    "shortened",
    "style",
]
