"""Summaries below the results of a search, from a script: browsers fetch no page from disk."""

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

_LONGEST = 160  # characters of a summary: two lines of a phone
_SHORTEST = 30  # characters of a paragraph worth showing
_SCRIPT = """
const summaries = %s;
const add = (item) => {
  const link = item.querySelector("a"), page = link.getAttribute("href").replace(/\\.html.*/, "");
  if (item.querySelector("span, p") || !(page in summaries)) return;
  const summary = item.appendChild(document.createElement("p"));
  summary.className = "context";
  summary.textContent = summaries[page];
};
document.addEventListener("DOMContentLoaded", () => {
  const results = document.getElementById("search-results");
  const addAll = () => results.querySelectorAll("li").forEach(add);
  new MutationObserver(addAll).observe(results, { childList: true, subtree: true });
});
"""


def summary_of(document: nodes.document) -> str:
    """Return the first paragraph of a page, cut after a word."""
    parts = document.findall(nodes.paragraph)
    own = (part for part in parts if not isinstance(part.parent, nodes.Admonition))  # no notes
    texts = (" ".join(part.astext().split()) for part in own)
    text = next((text for text in texts if len(text) >= _SHORTEST), "")
    return text if len(text) <= _LONGEST else text[:_LONGEST].rpartition(" ")[0] + " …"


def write_script(app: Sphinx, error: Exception | None) -> None:
    """Write the script with the summaries of all pages."""
    if error is None and app.builder.format == "html":
        pages = {name: summary_of(app.env.get_doctree(name)) for name in app.env.found_docs}
        text = json.dumps({name: text for name, text in sorted(pages.items()) if text})
        Path(app.outdir, "_static", "summaries.js").write_text(_SCRIPT.lstrip() % text)


def add_script(app: Sphinx, page: str, *_: Any) -> None:
    """Load the script on the page of the search."""
    if page == "search":
        app.add_js_file("summaries.js")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the script."""
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
