"""One self-contained HTML page from sections."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from lodl.report._blocks import Section


@dataclass(frozen=True)
class Headline:
    """The first thing on a page: one number, what it means, and one figure.

    Attributes:
        kicker: What the number is.
        number: The number, as text.
        text: What it means, in a few sentences.
        svg: A figure, made by `svg_of`.
    """

    kicker: str
    number: str
    text: str
    svg: Markup


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
        title: The heading.
        scope: What the page is about, in a line.
        sections: The contents.
        footer: How to read the numbers.
        headline: One number above everything else.
        verdict: What it all amounts to, one line each.
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
