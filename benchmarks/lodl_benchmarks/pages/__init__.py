"""Pages of runs: rows in, results, tables, figures and sections out."""

from lodl_benchmarks.pages._draw import draw_quality, draw_time, in_method_order, method_colours
from lodl_benchmarks.pages._fidelity_section import (
    FIDELITY_TEXT,
    FIDELITY_TITLE,
    fidelity_section,
)
from lodl_benchmarks.pages._figure_files import save_figure
from lodl_benchmarks.pages._json import blaming, read_json
from lodl_benchmarks.pages._mean_std import MeanStd, mean_cell, plus_minus
from lodl_benchmarks.pages._page import render_page, write_page
from lodl_benchmarks.pages._result_sections import (
    domain_id,
    others_section,
    quality_section,
    settings_section,
    time_section,
)
from lodl_benchmarks.pages._results import Result, Results, results_of
from lodl_benchmarks.pages._rows import PARTS, Row, parse_row, read_json_rows, read_rows
from lodl_benchmarks.pages._slices import Slice, draw_slice, slices_section
from lodl_benchmarks.pages._tests import holm, p_cell, t_test, verdict_of

__all__ = [
    "FIDELITY_TEXT",
    "FIDELITY_TITLE",
    "PARTS",
    "MeanStd",
    "Result",
    "Results",
    "Row",
    "Slice",
    "blaming",
    "domain_id",
    "draw_quality",
    "draw_slice",
    "draw_time",
    "fidelity_section",
    "holm",
    "in_method_order",
    "mean_cell",
    "method_colours",
    "others_section",
    "p_cell",
    "parse_row",
    "plus_minus",
    "quality_section",
    "read_json",
    "read_json_rows",
    "read_rows",
    "render_page",
    "results_of",
    "save_figure",
    "settings_section",
    "slices_section",
    "t_test",
    "time_section",
    "verdict_of",
    "write_page",
]
