"""The parts of a page and of its data files, for other pages in the same style."""

from lodl._json import blaming, read_json, write_json, write_text
from lodl.report._blocks import Block, Section, svg_of
from lodl.report._page import Headline, render
from lodl.report._style import INK, MUTED, PAPER, new_figure, shortened

__all__ = [
    "INK",
    "MUTED",
    "PAPER",
    "Block",
    "Headline",
    "Section",
    "blaming",
    "new_figure",
    "read_json",
    "render",
    "shortened",
    "svg_of",
    "write_json",
    "write_text",
]
