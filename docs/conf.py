"""Configuration of the site: built offline, from the sources alone, and to be read from disk."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = [str(HERE.parent / "src"), str(HERE.parent / "benchmarks")]
sys.path[:0] = [str(HERE / "_extensions"), *SOURCES]
os.environ["PYTHONPATH"] = os.pathsep.join(SOURCES)  # examples run in worker processes

from lodl._json import package_version  # noqa: E402

project = "lodl"
author = "The lodl developers"
copyright = "the lodl developers, MIT licence"  # noqa: A001 - Sphinx's name
release = version = package_version()

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # Our own, in _extensions:
    "api_pages",
    "command_help",
    "docstrings",
    "mathml",
    "result_pages",
    "run_code",
    "search_summaries",
]
exclude_patterns = ["_build", "_extensions", "_templates", "**/sg_execution_times.rst"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # the gallery's settings hold objects

# Markdown
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The reference, from docstrings
default_role = "py:obj"
autodoc_default_options = {"member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
strip_signature_backslash = True  # so that `chosen_` keeps its underscore
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

# Examples, executed while the site is built
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("lodl",),
    "reference_url": {"lodl": None},
    "subsection_order": ["../examples/problems", "../examples/models", "../examples/adapters"],
    "within_subsection_order": "FileNameSortKey",
    "nested_sections": False,
    "parallel": 2,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "remove_config_comments": True,
    "capture_repr": (),
    "matplotlib_animations": False,
    "image_srcset": ["2x"],
    "download_all_examples": False,
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "reset_modules": ("gallery_style.reset",),
}

# The page
html_theme = "pydata_sphinx_theme"
html_title = "lodl"
html_logo = "_static/logo.svg"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["lodl.css"]
html_math_renderer = "mathml"  # no script to fetch
html_show_search_summary = False  # fetched, which browsers refuse on file://; ours are not
html_show_sourcelink = False
html_show_sphinx = False
html_copy_source = False
html_context = {"default_mode": "auto"}  # dark where the reader's system is
html_theme_options = {
    "logo": {"text": "lodl", "alt_text": "lodl"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "search_bar_text": "Search",
}
html_sidebars = {"index": []}
copybutton_exclude = ".linenos, .gp, .go"
