"""The directives `run` and `shell`: code that is executed while the page is built, with its output.

    ```{run}
    print(1 + 1)
    ```

The blocks of a page share their names and a temporary folder to work in; `RESULTS` is the folder of
the committed results. Figures are shown below the block that drew them. With the option `hide`,
only what was printed and drawn is shown. With `file`, the code is written to that file instead, as
a user would. Code that raises is an error of the build.

A block of `shell` holds commands, which are shown with what they print. If a command ends with an
error, the build fails, unless the block has the option `fails`: then it shows the message.
"""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from gallery_style import reset

IMAGES = "_run"


class Run(SphinxDirective):
    """Run the content and show it."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "hide": directives.flag,
        "alt": directives.unchanged,
        "file": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """Return the code, what it printed, and its figures."""
        code = "\n".join(self.content)
        page = self.env.temp_data.setdefault("run_code", _Page(self.env.docname))
        if "file" in self.options:
            (Path(page.folder.name) / self.options["file"]).write_text(f"{code}\n")
            shown = nodes.literal_block(code, code, language="python")
            return [nodes.container("", shown, classes=["of-a-file"])]
        try:
            printed, figures = page.run(code, Path(self.env.srcdir))
        except Exception:  # noqa: BLE001 - whatever it is, the page names it
            raise self.error(f"This code raised:\n{code}\n{traceback.format_exc()}") from None
        shown: list[nodes.Node] = []
        if "hide" not in self.options:
            shown.append(nodes.literal_block(code, code, language="python"))
        if printed.strip():
            text = printed.rstrip()
            shown.append(nodes.literal_block(text, text, language="none", classes=["printed"]))
        alt = self.options.get("alt", "Figure drawn by the code above")
        shown += [nodes.image(uri=uri, alt=alt, classes=["drawn"]) for uri in figures]
        return shown


class Shell(SphinxDirective):
    """Run commands and show them."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"fails": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Return the commands and what they printed."""
        page = self.env.temp_data.setdefault("run_code", _Page(self.env.docname))
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"PATH": path, "COLUMNS": "88"}
        shown = []
        for command in "\n".join(self.content).replace("\\\n", "\\\0").split("\n"):
            line = command.replace("\0", "\n")
            done = subprocess.run(
                line,
                shell=True,
                cwd=page.folder.name,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if (done.returncode != 0) != ("fails" in self.options):
                raise self.error(f"{line}\nended with {done.returncode}:\n{done.stderr}")
            printed = done.stderr if done.returncode else done.stdout
            shown.append(f"$ {line}\n{printed.rstrip()}".rstrip())
        text = "\n".join(shown)
        return [nodes.literal_block(text, text, language="none", classes=["printed"])]


class _Page:
    """The names and the folder that the blocks of a page share."""

    def __init__(self, docname: str) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.stem, self.n_figures = docname.replace("/", "-"), 0
        self.folder = tempfile.TemporaryDirectory()
        reset()

    def run(self, code: str, source: Path) -> tuple[str, list[str]]:
        """Return what the code printed, and the figures that it drew."""
        printed = io.StringIO()
        before = Path.cwd()
        self.names["RESULTS"] = source.parent / "results"
        os.chdir(self.folder.name)
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(code, f"<{self.stem}>", "exec"), self.names)
        finally:
            os.chdir(before)
        return printed.getvalue(), self._figures(source)

    def _figures(self, source: Path) -> list[str]:
        import matplotlib.pyplot as plt

        (source / IMAGES).mkdir(exist_ok=True)
        uris = []
        for number in plt.get_fignums():
            self.n_figures += 1
            uri = f"/{IMAGES}/{self.stem}-{self.n_figures}.png"
            plt.figure(number).savefig(source / uri[1:], dpi=160, bbox_inches="tight")
            plt.close(number)
            uris.append(uri)
        return uris


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("run", Run)
    app.add_directive("shell", Shell)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
