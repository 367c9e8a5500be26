"""Pages of the reference, one per public module, from the names in its `__all__`.

A name is described on the page of the first module that lists it. `lodl` comes first.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import lodl
from docstrings import marked_up

NOT_SHOWN = ("lodl.cli",)


def public_modules() -> list[str]:
    """Return the names of all modules that list public names, `lodl` first."""
    found = ["lodl"]
    for module in pkgutil.walk_packages(lodl.__path__, "lodl."):
        is_private = any(part.startswith("_") for part in module.name.split("."))
        if not is_private and not module.name.startswith(NOT_SHOWN):
            found.append(module.name)
    return found


def public_names(modules: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each module with the names that are described under it, each object once."""
    seen: dict[int, str] = {}
    for name in modules:
        module = importlib.import_module(name)
        names = getattr(module, "__all__", None) or _defined_in(module)
        new = [one for one in names if id(getattr(module, one)) not in seen]
        seen |= {id(getattr(module, one)): name for one in new}
        yield name, new


def _defined_in(module: Any) -> list[str]:
    """Return the public classes and functions that a module defines itself."""
    return [
        name
        for name, value in vars(module).items()
        if name[0] != "_" and getattr(value, "__module__", None) == module.__name__
    ]


def page_of(module: str, names: list[str]) -> str:
    """Return the page of a module."""
    doc = inspect.getdoc(importlib.import_module(module)) or ""
    documented = "\n".join(marked_up(doc.splitlines()))
    parts = [module, "=" * len(module), "", documented, ""]
    for title, wanted in (("Classes", True), ("Functions", False)):
        chosen = [name for name in names if _is_class(module, name) is wanted]
        if chosen:
            parts += [f".. rubric:: {title}", ""]
            parts += [f".. currentmodule:: {module}", "", ".. autosummary::", "   :toctree:", ""]
            parts += [*(f"   {name}" for name in chosen), ""]
    return "\n".join(parts)


def _is_class(module: str, name: str) -> bool:
    return inspect.isclass(getattr(importlib.import_module(module), name))


def write_pages(app: Sphinx, config: Any) -> None:
    """Write the pages, unless they have not changed, and register them with autosummary."""
    folder = Path(app.srcdir) / "reference" / "api"
    folder.mkdir(parents=True, exist_ok=True)
    listed = list(public_names(public_modules()))
    contents = {f"module-{module}": page_of(module, names) for module, names in listed if names}
    for stem, text in contents.items():
        path = folder / f"{stem}.rst"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    config.autosummary_generate = [f"reference/api/{stem}.rst" for stem in contents]
    known = {f"{module}.{name}" for module, names in listed for name in names} | set(contents)
    for path in folder.glob("*.rst"):  # pages of names that no longer exist
        if path.stem not in known:
            path.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for what there is."""
    app.connect("config-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
