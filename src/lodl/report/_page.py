"""Rendering of sections as one self-contained HTML page."""

# ruff: noqa: E402
import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from lodl._arrays import require

require("jinja2", extra="report")

from jinja2 import Environment, PackageLoader, StrictUndefined

from lodl.report._html import Headline, Section


def render(
    *,
    title: str,
    scope: str,
    sections: Sequence[Section],
    footer: str,
    headline: Headline | None = None,
    verdict: Sequence[str] = (),
) -> str:
    """Return the HTML of a page.

    Args:
        title: Heading.
        scope: Subject of the page in one line.
        sections: Contents.
        footer: How to read the numbers.
        headline: One number above everything else.
        verdict: Conclusions, one line each.
    """
    script = _asset("page.js")
    environment = Environment(
        loader=PackageLoader("lodl.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        title=title,
        scope=scope,
        headline=headline,
        verdict=verdict,
        sections=sections,
        footer=footer,
        css=_asset("page.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _asset(name: str) -> str:
    return files("lodl.report").joinpath("templates", name).read_text(encoding="utf-8")
