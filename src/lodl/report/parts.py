"""The parts of the page and of its data files, for pages that show more than `write_report`."""

from lodl._json_file import blaming, read_json, write_json, write_text
from lodl.report._blocks import Block, Section, svg_of
from lodl.report._fidelity_section import FIDELITY_TEXT, FIDELITY_TITLE, fidelity_section
from lodl.report._page import render, render_page, write_page
from lodl.report._result_sections import (
    domain_id,
    others_section,
    quality_section,
    settings_section,
    time_section,
)
from lodl.report._rows import PARTS, parse_row, read_json_rows
from lodl.report._slices import slices_section
from lodl.report._style import INK, MUTED, PAPER, in_method_order, new_figure, shortened

__all__ = [
    "FIDELITY_TEXT",
    "FIDELITY_TITLE",
    "INK",
    "MUTED",
    "PAPER",
    "PARTS",
    "Block",
    "Section",
    "blaming",
    "domain_id",
    "fidelity_section",
    "in_method_order",
    "new_figure",
    "others_section",
    "parse_row",
    "quality_section",
    "read_json",
    "read_json_rows",
    "render",
    "render_page",
    "settings_section",
    "shortened",
    "slices_section",
    "svg_of",
    "time_section",
    "write_json",
    "write_page",
    "write_text",
]
