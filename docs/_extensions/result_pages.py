"""Pages of the results: the Markdown files in `results/`, with links that hold on the site.

`results/README.md` becomes `results/pages/overview`, `results/rounds/README.md` becomes
`results/pages/rounds`, and its table `results/rounds/rounds.md` `results/pages/rounds-rounds`.
"""

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def page_name(path: Path, results: Path) -> str:
    """Return the name of the page that a file becomes."""
    parts = [part for part in path.relative_to(results).with_suffix("").parts if part != "README"]
    return "-".join(parts) or "overview"


def page_of(path: Path, results: Path, folder: Path) -> str:
    """Return a file's text with links to other pages, to images, and to nothing else."""

    def linked(match: re.Match[str]) -> str:
        image, text, target, anchor = match.groups()
        there = (path.parent / target).resolve()
        if "://" in target:
            return match[0]
        if image or there.suffix in (".svg", ".png"):
            return f"{image}[{text}]({os.path.relpath(there, folder)})"
        if there.suffix == ".md" and there.is_relative_to(results):
            return f"[{text}]({page_name(there, results)}.md{anchor or ''})"
        return text if text.startswith("`") else f"`{text}`"

    text = _LINK.sub(linked, path.read_text())
    return text if text.startswith("# ") else f"# {title_of(page_name(path, results))}\n\n{text}"


def title_of(name: str) -> str:
    """Return the title of a page without one: "Paper: table 2a", "Rounds: all tables"."""
    folder, _, rest = name.partition("-")
    what = "all tables" if rest == folder else rest.replace("-", " ").replace("table", "table ")
    return f"{folder.capitalize()}: {what}" if what else folder.capitalize().replace("_", " ")


def write_pages(app: Sphinx, config: object) -> None:
    """Write a page for each file, and remove those of files that are gone."""
    results = Path(app.srcdir).resolve().parent / "results"
    folder = Path(app.srcdir).resolve() / "results" / "pages"
    folder.mkdir(exist_ok=True)
    pages = {page_name(path, results): path for path in results.rglob("*.md")}
    for name, path in pages.items():
        text, page = page_of(path, results, folder), folder / f"{name}.md"
        if not page.exists() or page.read_text() != text:
            page.write_text(text)
    for page in folder.glob("*.md"):
        if page.stem not in pages:
            page.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for what there is."""
    app.connect("config-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
