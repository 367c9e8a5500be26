"""From the way our docstrings are written to the markup that Sphinx reads.

Docstrings are written to be read as they are: names in single backticks, formulas and code in
indented blocks, shapes such as (n, *label_shape). Here these become references, literal blocks and
escaped stars. In signatures, types are called by the names that the code gives them.
"""

import re
from typing import Any

from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

from lodl._typing import Array, Context

_MARKUP = re.compile(r"(?<![\w*`\\])(\*{1,2})(?=\w)|\|")  # a star before a word, or a bar
_ITEM = re.compile(r"[-*] |\d+\. |>>> ")
_SECTION = re.compile(r"(Args|Attributes|Example|Examples|Raises|Returns|Yields):$")


def marked_up(lines: list[str]) -> list[str]:
    """Return the lines of a docstring in reStructuredText."""
    out: list[str] = []
    literal: int | None = None  # indentation of the text around a literal block
    text = 0  # indentation of the last line of text
    for number, line in enumerate(lines):
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        if literal is not None and stripped and indent <= literal:
            literal = None
        starts_block = (
            literal is None and stripped and out and not out[-1].strip()
            and indent > text and not _ITEM.match(stripped)
        )  # fmt: skip
        if starts_block:
            literal = text
            language = _language(lines[number:], indent)
            out += [" " * text + f".. code-block:: {language}", ""]
        out.append(line if literal is not None or stripped[:3] == ">>>" else _escaped(line))
        if stripped and literal is None:
            item = _ITEM.match(stripped)
            text = indent + (len(item[0]) if item else 4 if _SECTION.match(stripped) else 0)
    return out


def _language(lines: list[str], indent: int) -> str:
    """Return whether a literal block is code or a formula."""
    ends = (i for i, line in enumerate(lines) if line.strip() and line[:indent].strip())
    block = "\n".join(line[indent:] for line in lines[: next(ends, None)])
    try:
        compile(block, "<docstring>", "exec")
    except SyntaxError:
        return "none"
    return "python"


def _escaped(line: str) -> str:
    """Return a line of text with stars and bars escaped, outside of code."""
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(
        part if part[:1] == "`" else _MARKUP.sub(lambda m: re.sub(r"(.)", r"\\\1", m[0]), part)
        for part in parts
    )


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = marked_up(lines)


_SHORT_NAMES = {
    stringify_annotation(long, "smart"): name
    for name, long in (("ArrayLike", ArrayLike), ("Context", Context), ("Array", Array))
}


def _shortened(signature: str | None) -> str | None:
    for long, short in _SHORT_NAMES.items() if signature else ():
        signature = signature.replace(long, short) if signature else None
    return signature


def _process_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, returned: str
) -> tuple[str | None, str | None]:
    return _shortened(signature), _shortened(returned)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the step before Sphinx reads the sections of Google's style."""
    app.connect("autodoc-process-docstring", _process, priority=100)
    app.connect("autodoc-process-signature", _process_signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
